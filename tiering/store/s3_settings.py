"""S3 options as the ecosystem spells them: arguments, environment, profile.

An argument wins over the environment, the environment over the profile. Keys in the environment
and credentials of roles are read by obstore itself; what stands in `~/.aws` (profiles, SSO,
assumed roles, processes) is read through botocore, which also renews it.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tiering.errors import AccessDeniedError, StoreError, StoreURLError
from tiering.printable import printable_text

__all__ = ["CredentialProvider", "s3_settings"]

ASK_AGAIN = timedelta(minutes=5)
"""botocore renews what is about to expire when it is asked; so it is asked this often."""

_SYNONYMS = {
    "endpoint_url": "endpoint",
    "region_name": "region",
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "token",
    "session_token": "token",
    "anonymous": "skip_signature",
    "anon": "skip_signature",
}
_REGION = "us-east-1"


def s3_settings(
    options: Mapping[str, Any], environment: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns obstore's settings and, where botocore gives them, its source of credentials.

    Args:
        options: what the caller gave: `endpoint_url`, `region`, `profile`, `anonymous`,
            `access_key_id`, `secret_access_key`, `session_token`, and whatever else obstore's
            S3 store knows.
        environment: os.environ.
    """
    settings = {_SYNONYMS.get(name, name): value for name, value in options.items()}
    chosen = settings.pop("profile", None)
    profile = chosen or (None if "access_key_id" in settings else environment.get("AWS_PROFILE"))
    has_keys = "access_key_id" in settings or bool(settings.get("skip_signature"))
    if not chosen:
        has_keys = has_keys or bool(environment.get("AWS_ACCESS_KEY_ID"))
    defaults: dict[str, Any] = {
        "endpoint": environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL"),
        "region": environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION"),
    }
    extra: dict[str, Any] = {}
    if profile or (not has_keys and _has_files(environment)):
        with _named(profile):
            session = _session(profile)
            scoped = session.get_scoped_config() if session else {}
            if session and not has_keys:
                extra = _credentials(session, profile)
        defaults["endpoint"] = defaults["endpoint"] or scoped.get("endpoint_url")
        defaults["region"] = defaults["region"] or scoped.get("region")
    defaults["region"] = defaults["region"] or _REGION
    settings = {**{k: v for k, v in defaults.items() if v}, **settings}
    # Bulk deletion is a request that not every maker's server knows.
    return {"disable_bulk_delete": True, **settings}, extra


class CredentialProvider:
    """Gives obstore the credentials of a botocore session, renewed; prints none of them."""

    def __init__(
        self, credentials: Any, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._credentials = credentials
        self._now = now

    def __call__(self) -> dict[str, Any]:
        """Returns credentials that hold at least until they are asked for again."""
        frozen = self._credentials.get_frozen_credentials()
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            "expires_at": self._now() + ASK_AGAIN,
        }


def _has_files(environment: Mapping[str, str]) -> bool:
    home = Path(environment.get("HOME", "/"))
    credentials = environment.get("AWS_SHARED_CREDENTIALS_FILE") or home / ".aws/credentials"
    config = environment.get("AWS_CONFIG_FILE") or home / ".aws/config"
    return Path(credentials).exists() or Path(config).exists()


def _session(profile: str | None) -> Any:
    try:
        botocore = importlib.import_module("botocore.session")
    except ImportError as error:
        if profile is None:
            return None
        raise StoreURLError(
            f"the profile {profile!r} needs the package botocore, which can't be imported "
            f"({error}); nothing was opened; pip install 'datapipe-train[s3]'"
        ) from error
    return botocore.Session(profile=profile)


@contextlib.contextmanager
def _named(profile: str | None) -> Iterator[None]:
    """Turns botocore's errors about ~/.aws into one that names the profile."""
    try:
        yield
    except StoreError:
        raise
    except Exception as error:
        if type(error).__module__ != "botocore.exceptions":
            raise
        problem = printable_text(str(error))
    else:
        return
    raise AccessDeniedError(
        f"the profile {profile or 'default'!r} can't be used: {problem}; nothing was opened; check "
        "~/.aws, or log in"
    )


def _credentials(session: Any, profile: str | None) -> dict[str, Any]:
    found = session.get_credentials()
    if found is None and profile is None:
        return {}  # obstore goes on to roles of the machine
    if found is None:
        raise AccessDeniedError(
            f"the profile {profile!r} has no credentials; nothing was opened; check ~/.aws, or "
            "log in"
        )
    return {"credential_provider": CredentialProvider(found)}
