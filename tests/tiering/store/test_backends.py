from __future__ import annotations

import http.client
import uuid
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tiering.store import Store, open_store
from tiering.testing import (
    AzureServer,
    S3Server,
    StoreConformance,
    has_moto,
    moto_server,
)


class TestMemory(StoreConformance):
    @pytest.fixture
    def store(self) -> Store:
        pytest.importorskip("obstore", reason="obstore isn't installed")
        return open_store(f"memory://{uuid.uuid4().hex}/below")


@pytest.mark.s3
class TestSeaweed(StoreConformance):
    @pytest.fixture
    def store(self, s3_server: S3Server) -> Store:
        return open_store(f"s3://bucket/{uuid.uuid4().hex}", **s3_server.options())


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    if not has_moto():
        pytest.skip("moto's server isn't installed; pip install 'moto[server]'")
    with moto_server(tmp_path_factory.mktemp("moto")) as server:
        address = urlsplit(server.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port)
        connection.request("PUT", "/bucket")  # it checks no signatures
        assert connection.getresponse().status == 200
        connection.close()
        yield server


@pytest.mark.s3
class TestMoto(StoreConformance):
    @pytest.fixture
    def store(self, moto: S3Server) -> Store:
        return open_store(f"s3://bucket/{uuid.uuid4().hex}", **moto.options())


class TestAzurite(StoreConformance):
    @pytest.fixture
    def store(self, azurite: AzureServer) -> Store:
        return open_store(f"az://{azurite.container}/{uuid.uuid4().hex}", **azurite.options())


class TestFsspecMemory(StoreConformance):
    @pytest.fixture
    def store(self) -> Store:
        pytest.importorskip("fsspec", reason="fsspec isn't installed")
        url = f"memory://{uuid.uuid4().hex}"
        return open_store(url, backend="fsspec", single_writer=True)


@pytest.mark.s3
class TestFsspecSeaweed(StoreConformance):
    @pytest.fixture
    def store(self, s3_server: S3Server) -> Store:
        pytest.importorskip("s3fs", reason="s3fs isn't installed")
        key, secret = s3_server.admin
        return open_store(
            f"s3://bucket/{uuid.uuid4().hex}",
            backend="fsspec",
            endpoint_url=s3_server.url,
            key=key,
            secret=secret,
        )


def test_the_local_store_passes_through_the_same_door(tmp_path: Path) -> None:
    assert open_store(str(tmp_path)).url == str(tmp_path)
