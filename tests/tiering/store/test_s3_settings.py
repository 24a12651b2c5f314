"""Where S3 options and credentials come from."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tiering.errors import StoreError
from tiering.store import open_store
from tiering.store.s3_settings import ASK_AGAIN, CredentialProvider, s3_settings

NO_HOME = {"HOME": "/nonexistent"}


def settings_of(options: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    settings, extra = s3_settings(options, {**NO_HOME, **environment})
    assert extra == {}
    return settings


@pytest.mark.parametrize(
    ("options", "environment", "expected"),
    [
        ({}, {}, {"region": "us-east-1"}),
        ({"endpoint_url": "http://a"}, {"AWS_ENDPOINT_URL": "http://b"}, {"endpoint": "http://a"}),
        ({}, {"AWS_ENDPOINT_URL": "http://b"}, {"endpoint": "http://b"}),
        (
            {},
            {"AWS_ENDPOINT_URL": "http://b", "AWS_ENDPOINT_URL_S3": "http://c"},
            {"endpoint": "http://c"},
        ),
        ({"region_name": "eu-west-1"}, {"AWS_REGION": "x"}, {"region": "eu-west-1"}),
        ({}, {"AWS_DEFAULT_REGION": "eu-west-2"}, {"region": "eu-west-2"}),
        ({"anonymous": True}, {}, {"skip_signature": True}),
        (
            {"aws_access_key_id": "k", "aws_secret_access_key": "s", "aws_session_token": "t"},
            {},
            {"access_key_id": "k", "secret_access_key": "s", "token": "t"},
        ),
    ],
)
def test_arguments_win_over_the_environment(
    options: Mapping[str, Any], environment: Mapping[str, str], expected: Mapping[str, Any]
) -> None:
    settings = settings_of(options, environment)
    assert {name: settings[name] for name in expected} == dict(expected)


@pytest.fixture
def aws_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("botocore", reason="botocore isn't installed")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return tmp_path


def write_profile(folder: Path, process: Path) -> None:
    (folder / "config").write_text(
        "[profile lab]\nregion = eu-north-1\nendpoint_url = http://127.0.0.1:9\n"
        f"credential_process = {sys.executable} {process}\n"
    )


def write_process(path: Path, *, key: str, expires: datetime) -> None:
    answer = {
        "Version": 1,
        "AccessKeyId": key,
        "SecretAccessKey": "secret",
        "SessionToken": "token",
        "Expiration": expires.isoformat(),
    }
    path.write_text(f"import json\nprint(json.dumps({answer!r}))\n")


def test_a_profile_gives_endpoint_region_and_credentials_that_are_renewed(
    aws_files: Path,
) -> None:
    process = aws_files / "process.py"
    write_profile(aws_files, process)
    write_process(process, key="first", expires=datetime.now(UTC) + timedelta(seconds=5))
    settings, extra = s3_settings({"profile": "lab"}, NO_HOME)
    assert settings["endpoint"] == "http://127.0.0.1:9"
    assert settings["region"] == "eu-north-1"
    provider = extra["credential_provider"]
    assert isinstance(provider, CredentialProvider)
    write_process(process, key="second", expires=datetime.now(UTC) + timedelta(hours=1))
    renewed = provider()
    assert (renewed["access_key_id"], renewed["token"]) == ("second", "token")
    assert renewed["expires_at"] <= datetime.now(UTC) + ASK_AGAIN
    assert "secret" not in repr(provider)


def test_a_profile_of_the_environment_is_used(aws_files: Path) -> None:
    (aws_files / "config").write_text("[profile lab]\nregion = eu-north-1\n")
    (aws_files / "credentials").write_text(
        "[lab]\naws_access_key_id = k\naws_secret_access_key = s\n"
    )
    settings, extra = s3_settings({}, {**NO_HOME, "AWS_PROFILE": "lab"})
    assert settings["region"] == "eu-north-1"
    assert extra["credential_provider"]()["access_key_id"] == "k"


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, False), ({"profile": "lab"}, True)],
    ids=["environment", "argument"],
)
def test_keys_of_the_environment_yield_only_to_a_profile_that_was_asked_for(
    aws_files: Path, options: Mapping[str, Any], expected: bool
) -> None:
    (aws_files / "config").write_text("[profile lab]\nregion = eu-north-1\n")
    (aws_files / "credentials").write_text(
        "[lab]\naws_access_key_id = k\naws_secret_access_key = s\n"
    )
    environment = {**NO_HOME, "AWS_PROFILE": "lab", "AWS_ACCESS_KEY_ID": "other"}
    settings, extra = s3_settings(options, environment)
    assert settings["region"] == "eu-north-1"
    assert ("credential_provider" in extra) is expected


def test_an_unknown_profile_is_named(aws_files: Path) -> None:
    assert aws_files.exists()
    store = open_store("s3://bucket", profile="nowhere").blocking()
    with pytest.raises(StoreError, match="profile"):
        store.get("object")


def test_an_unknown_option_is_named() -> None:
    pytest.importorskip("obstore", reason="obstore isn't installed")
    store = open_store("s3://bucket", colour="red", access_key_id="k").blocking()
    with pytest.raises(StoreError, match=r"s3://bucket can't be opened: .*colour"):
        store.get("object")
