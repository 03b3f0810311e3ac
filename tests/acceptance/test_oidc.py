"""Tokens of an OpenID Connect issuer: one that runs here, asked as any other; and MCP's own client with OAuth."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from mcp import ClientSession
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from memstore.client.store import AsyncMemoryStore
from memstore.errors import ConfigurationError
from memstore.server.http import oidc as checks
from memstore.server.http.app import load_mcp, load_oidc
from tests.rest import HASHING, asking, bearer, path, said, serving

AUDIENCE = "https://memory.example"


class Issuer:
    """An issuer with keys by id, which gives tokens to whoever asks: for Alice, and for the resource that is named."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {"first": rsa.generate_private_key(public_exponent=65537, key_size=2048)}
        self.asked: list[str] = []
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self, document: Any, status: int = 200) -> None:
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                documents = {"/keys": issuer.key_set()} | dict.fromkeys(
                    ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"),
                    issuer.configuration(),
                )
                self.answer(documents.get(self.path, {}), 200 if self.path in documents else 404)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == "/register":
                    self.answer(json.loads(body) | {"client_id": "client"}, 201)
                    return
                [resource] = parse_qs(body.decode())["resource"]
                token = issuer.token(aud=resource)
                self.answer({"access_token": token, "token_type": "Bearer", "expires_in": 60})

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def configuration(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/keys",
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        }

    def key_set(self) -> dict[str, Any]:
        def public(key: Any) -> dict[str, Any]:
            algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
            return dict(algorithm.to_jwk(key.public_key(), as_dict=True))

        return {"keys": [public(key) | {"kid": id, "use": "sig"} for id, key in self.keys.items()]}

    def token(self, key: str = "first", algorithm: str = "RS256", **claims: Any) -> str:
        now = int(time.time())
        given = {"iss": self.url, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + 60} | claims
        given = {name: value for name, value in given.items() if value is not None}
        return jwt.encode(given, self.keys[key], algorithm=algorithm, headers={"kid": key})


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    issuer = Issuer()
    thread = threading.Thread(target=issuer.server.serve_forever)
    thread.start()
    yield issuer
    issuer.server.shutdown()
    issuer.server.server_close()
    thread.join()


def settings(issuer: Issuer, **options: Any) -> dict[str, Any]:
    return {**HASHING, "server_oidc_issuer": issuer.url, "server_oidc_audience": AUDIENCE, **options}


async def test_a_token_of_the_issuer_opens_its_user_s_memory_alone(url: str, issuer: Issuer) -> None:
    issuer.keys["curve"] = ec.generate_private_key(ec.SECP256R1())
    async with await AsyncMemoryStore.open(url, settings=settings(issuer)) as store:
        ours = (await store.tokens.create(user="bob")).secret
        async with asking(store, oidc=await load_oidc(store.settings)) as client:
            below = issuer.token(aud=["x", f"{AUDIENCE}/mcp/alice"])
            for token in (issuer.token(), issuer.token("curve", "ES256"), below):
                sent = await client.post(
                    path("alice", "conversations", "c", "messages"), json=said("Hello."), headers=bearer(token)
                )
                assert sent.status_code == 201
                assert (await client.get(path("bob"), headers=bearer(token))).status_code == 404
                assert (await client.get("/v1/users", headers=bearer(token))).status_code == 403
            assert (await client.get(path("bob"), headers=bearer(ours))).status_code == 200
            assert (await client.get(path("bob"))).status_code == 401


async def test_what_is_no_token_of_the_issuer_for_this_server_opens_nothing(url: str, issuer: Issuer) -> None:
    stranger = Issuer()
    stranger.server.server_close()
    public = issuer.keys["first"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    now = int(time.time())
    claims = {"iss": issuer.url, "aud": AUDIENCE, "sub": "alice", "exp": now + 60}
    head = jwt.utils.base64url_encode(json.dumps({"alg": "HS256", "typ": "JWT", "kid": "first"}).encode())
    body = jwt.utils.base64url_encode(json.dumps(claims).encode())
    signed = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(head + b"." + body, public)
    good = issuer.token()
    refused = {
        "no algorithm": jwt.encode(claims, None, algorithm="none", headers={"kid": "first"}),
        "the public key as a secret": b".".join((head, body, jwt.utils.base64url_encode(signed))).decode(),
        "another's signature": stranger.token(iss=issuer.url),
        "another issuer": issuer.token(iss="https://other.example"),
        "for somebody else": issuer.token(aud="https://other.example"),
        "for a name that begins alike": issuer.token(aud=f"{AUDIENCE}.evil.example"),
        "for nobody": issuer.token(aud=None),
        "expired": issuer.token(exp=now - 60),
        "without an end": issuer.token(exp=None),
        "not yet": issuer.token(nbf=now + 120),
        "of nobody": issuer.token(sub=None),
        "of no text": issuer.token(sub=" "),
        "of a space": issuer.token(sub="space:otter"),
        "changed": good[:-8] + ("A" * 8 if good[-8:] != "A" * 8 else "B" * 8),
        "no token": "a.b.c",
        "no dots": "abc",
    }
    async with await AsyncMemoryStore.open(url, settings=settings(issuer)) as store:
        await store.user("alice").conversation("c").add("user", "I'm allergic to peanuts.")
        async with asking(store, oidc=await load_oidc(store.settings)) as client:
            for name, token in refused.items():
                for user in ("alice", "space:otter", " "):
                    assert (await client.get(path(user), headers=bearer(token))).status_code == 401, name
            assert (await client.get(path("alice"), headers=bearer(good))).status_code == 200


async def test_an_address_that_nobody_has_verified_is_no_user(url: str, issuer: Issuer) -> None:
    options = settings(issuer, server_oidc_user_claim="email")
    async with await AsyncMemoryStore.open(url, settings=options) as store:
        oidc = await load_oidc(store.settings)
        async with asking(store, oidc=oidc) as client:
            for verified, status in ((True, 200), (False, 401), ("true", 401), (None, 401)):
                token = issuer.token(email="ann@example.org", email_verified=verified)
                assert (await client.get(path("ann@example.org"), headers=bearer(token))).status_code == status


async def test_new_keys_are_known_and_forged_ones_cost_nothing(
    url: str, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await AsyncMemoryStore.open(url, settings=settings(issuer)) as store:
        oidc = await load_oidc(store.settings)
        async with asking(store, oidc=oidc) as client:

            async def status(token: str) -> int:
                return (await client.get(path("alice"), headers=bearer(token))).status_code

            asked = len(issuer.asked)
            issuer.keys["second"] = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            assert [await status(issuer.token("second")) for _ in range(3)] == [401] * 3
            assert len(issuer.asked) == asked, "not at each unknown key"
            monkeypatch.setattr(checks, "MIN_KEY_AGE", 0.0)
            assert await status(issuer.token("second")) == 200
            del issuer.keys["first"]
            issuer.server.shutdown()
            issuer.server.server_close()
            assert await status(issuer.token("second")) == 200, "its keys are kept"
            monkeypatch.setattr(checks, "MAX_KEY_AGE", 0.0)
            assert await status(issuer.token("second")) == 200
            issuer.keys["third"] = issuer.keys["second"]
            answer = await client.get(path("alice"), headers=bearer(issuer.token("third")))
            assert (answer.status_code, issuer.url in answer.text) == (503, False)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"server_oidc_audience": None}, "server_oidc_audience"),
        ({"server_oidc_audience": "http://memory.example"}, "https://"),
        ({"server_oidc_issuer": "http://issuer.example"}, "https://"),
        ({"server_oidc_issuer": "http://127.0.0.1:1"}, "gives no keys"),
    ],
)
async def test_a_server_does_not_start_with_an_issuer_that_cannot_be_trusted(
    url: str, issuer: Issuer, options: dict[str, Any], told: str
) -> None:
    async with await AsyncMemoryStore.open(url, settings=settings(issuer, **options)) as store:
        with pytest.raises(ConfigurationError, match=told):
            await load_oidc(store.settings)


class Kept:
    """What a client of MCP keeps between runs."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def test_mcp_s_own_client_finds_the_issuer_and_comes_back_with_a_token(url: str, issuer: Issuer) -> None:
    async with await AsyncMemoryStore.open(url, settings=settings(issuer)) as store:
        oidc = await load_oidc(store.settings)
        assert oidc is not None
        async with serving(store, mcp=load_mcp(store), oidc=oidc) as (client, _):
            # The audience is where the server is: its port is known now.
            oidc.audience = str(client.base_url).rstrip("/")
            seen: list[str] = []

            async def redirect(address: str) -> None:
                seen.append(address)

            async def callback() -> AuthorizationCodeResult:
                return AuthorizationCodeResult(code="code", state=parse_qs(urlsplit(seen[-1]).query)["state"][0])

            address = f"{oidc.audience}/mcp/alice"
            metadata = OAuthClientMetadata(redirect_uris=["http://127.0.0.1:1/callback"], client_name="test")
            auth = OAuthClientProvider(address, metadata, Kept(), redirect, callback)
            async with (
                httpx2.AsyncClient(auth=auth) as http,
                streamable_http_client(address, http_client=http) as (read, write),
                ClientSession(read, write) as session,
            ):
                await session.initialize()
                answer = await session.call_tool("add_memory", {"text": "Alice plays the cello.", "type": "preference"})
                assert not answer.is_error
            assert seen[0].startswith(f"{issuer.url}/authorize?")
            assert parse_qs(urlsplit(seen[0]).query)["resource"] == [address]
            assert [fact.text for fact in await store.user("alice").facts()] == ["Alice plays the cello."]
