"""`s3://bucket/key` as a request to a web server: its address, and what it is signed with.

Keys come from the environment, else from the file of shared credentials, else from botocore if it is installed (which
also knows instance roles and single sign-on). `AWS_ENDPOINT_URL` names a server other than Amazon's. libcurl signs.
"""

import configparser
import os
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote

import msgspec

from gristmill.errors import ConfigError

SCHEME = "s3://"
_REGION = "us-east-1"  # where Common Crawl and arXiv are


class Signed(msgspec.Struct, frozen=True):
    """Where to send a request. `signature` says how libcurl signs it; "" if it does not."""

    url: str
    headers: tuple[str, ...] = ()
    signature: str = ""
    credentials: str = ""


class Keys(msgspec.Struct, frozen=True):
    """A key, its secret, and the token of a temporary key."""

    key: str
    secret: str
    token: str = ""


def is_signed(url: str) -> bool:
    """Whether requests for a URL are signed."""
    return url.startswith(SCHEME)


def signed(url: str, *, requester_pays: bool = False) -> Signed:
    """Return where and how to ask for a URL; one that is not S3's is returned as it is."""
    if not is_signed(url):
        return Signed(url)
    bucket, _, key = url.removeprefix(SCHEME).partition("/")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or _REGION
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    path = quote(key)
    if endpoint:
        address = f"{endpoint.rstrip('/')}/{bucket}/{path}"
    else:
        address = f"https://{bucket}.s3.{region}.amazonaws.com/{path}"
    keys = aws_keys()
    headers = [f"x-amz-security-token: {keys.token}"] if keys.token else []
    headers += ["x-amz-request-payer: requester"] if requester_pays else []
    return Signed(address, tuple(headers), f"aws:amz:{region}:s3", f"{keys.key}:{keys.secret}")


def check_keys() -> None:
    """Raise ConfigError if there are no keys to ask S3 with."""
    aws_keys()


def aws_keys() -> Keys:
    """Return the keys to sign with."""
    given = os.environ.get
    if given("AWS_ACCESS_KEY_ID") and given("AWS_SECRET_ACCESS_KEY"):
        token = given("AWS_SESSION_TOKEN", "")
        return Keys(given("AWS_ACCESS_KEY_ID", ""), given("AWS_SECRET_ACCESS_KEY", ""), token)
    profile = given("AWS_PROFILE") or "default"
    file = given("AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials"
    found = _keys_of_file(file, profile) or _keys_of_botocore()
    if found is None:
        raise ConfigError(
            "S3: expected keys in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile "
            f"{profile!r} in {file}; got neither"
        )
    return found


@lru_cache(maxsize=4)
def _keys_of_file(file: str, profile: str) -> Keys | None:
    parser = configparser.RawConfigParser()
    try:
        parser.read(Path(file).expanduser())
    except configparser.Error:
        return None
    if not parser.has_section(profile):
        return None
    section = parser[profile]
    if "aws_access_key_id" not in section or "aws_secret_access_key" not in section:
        return None
    return Keys(section["aws_access_key_id"], section["aws_secret_access_key"], section.get("aws_session_token", ""))


def _keys_of_botocore() -> Keys | None:
    """Not cached: botocore renews temporary keys itself."""
    try:
        import botocore.session
    except ModuleNotFoundError:
        return None
    lent = botocore.session.get_session().get_credentials()
    if lent is None:
        return None
    frozen = lent.get_frozen_credentials()
    return Keys(frozen.access_key, frozen.secret_key, frozen.token or "")
