"""Spaces by the servers: each token opens its user's memory, and the spaces that are shared with the user."""

import json

import pytest

from memstore.client.store import AsyncMemoryStore
from tests.helpers.ui_pages import crawled
from tests.rest import HASHING, asking, bearer, path, said


@pytest.fixture
async def tokens(url: str) -> dict[str, str]:
    """Return the tokens of four users; Alice has made a space, where Bob writes and Carol reads."""
    async with await AsyncMemoryStore.open(url, settings=HASHING) as store:
        secrets = {
            name: (await store.tokens.create(user=name)).secret or "" for name in ("alice", "bob", "carol", "eve")
        }
        otter = await store.user("alice").create_space("otter")
        await otter.grant("bob")
        await otter.grant("carol", "read")
        await otter.conversation("standup").add("user", "The staging server is called heron.")
        await store.derive()
    return secrets


async def test_a_team_shares_a_space_over_rest(url: str, tokens: dict[str, str]) -> None:
    async with await AsyncMemoryStore.open(url, settings=HASHING) as store, asking(store) as client:

        async def ask(name: str, method: str, *rest: str, **options: object) -> tuple[int, object]:
            answer = await client.request(method, path(*rest), headers=bearer(tokens[name]), **options)
            return answer.status_code, answer.json() if answer.content else None

        there = ("spaces", "otter", "conversations", "standup", "messages")
        assert (await ask("bob", "POST", "bob", *there, json=said("We ship on Friday.")))[0] == 201
        assert (await ask("carol", "POST", "carol", *there, json=said("I was here.")))[0] == 403
        assert (await ask("alice", "POST", "alice", "spaces", "otter", "derive"))[0] == 200
        for name in ("alice", "bob", "carol"):
            _, hits = await ask(name, "POST", name, "recall", json={"query": "staging server", "spaces": ["otter"]})
            assert isinstance(hits, list)
            assert [hit["space"] for hit in hits if hit["text"] == "The staging server is called heron."] == ["otter"]
            status, hits = await ask(name, "POST", name, "spaces", "otter", "recall", json={"query": "staging server"})
            assert (status, "heron" in json.dumps(hits)) == (200, True)
        status, members = await ask("bob", "GET", "bob", "spaces", "otter", "members")
        assert isinstance(members, list)
        assert [(member["member"], member["access"]) for member in members] == [
            ("alice", "admin"),
            ("bob", "write"),
            ("carol", "read"),
        ]
        grant = ("spaces", "otter", "members", "eve")
        assert (await ask("bob", "PUT", "bob", *grant, json={"access": "admin"}))[0] == 403
        assert (await ask("alice", "PUT", "alice", *grant, json={"access": "read"}))[0] == 200
        assert (await ask("eve", "GET", "eve", "spaces"))[1] != []
        assert (await ask("alice", "DELETE", "alice", *grant))[0] == 204
        assert (await ask("eve", "POST", "eve", "spaces", json={"name": "otter"}))[0] == 409
        assert (await ask("alice", "GET", "alice", "members"))[0] == 404
        assert (await ask("carol", "DELETE", "carol", "spaces", "otter"))[0] == 403


async def test_a_stranger_s_token_opens_nothing_of_a_space(url: str, tokens: dict[str, str]) -> None:
    """Every path of a user's is asked as a stranger, and for somebody else."""
    async with await AsyncMemoryStore.open(url, settings=HASHING) as store, asking(store) as client:
        schema = (await client.get("/openapi.json")).json()
        asked = 0
        for template, methods in schema["paths"].items():
            if "{user}" not in template or template.endswith("/spaces"):
                continue
            for user in ("eve/spaces/otter", "alice/spaces/otter", "eve/spaces/no-such-space", "space%3Aotter"):
                address = template.replace("{user}", user)
                for name in ("conversation", "member"):
                    address = address.replace(f"{{{name}}}", "standup")
                address = address.replace("{", "").replace("}", "")
                for method in methods:
                    answer = await client.request(method.upper(), address, headers=bearer(tokens["eve"]), json={})
                    assert answer.status_code in (404, 422), (method, address)
                    assert "heron" not in answer.text
                    asked += 1
        assert asked > 100
        assert len(await store.space("otter").conversation("standup").messages()) == 1


async def test_paths_of_spaces_take_any_name(url: str) -> None:
    async with await AsyncMemoryStore.open(url, settings=HASHING) as store, asking(store) as client:
        name, space = "a/spaces/b", "c/d spaces?%"
        assert (await client.post(path(name, "spaces"), json={"name": space})).status_code == 201
        added = await client.post(
            path(name, "spaces", space, "conversations", "spaces", "messages"), json=said("Hello.")
        )
        assert added.status_code == 201
        assert [grant.space for grant in await store.user(name).spaces()] == [space]
        assert len(await store.space(space).conversation("spaces").messages()) == 1


async def test_pages_show_a_space_to_its_members_alone(url: str, tokens: dict[str, str]) -> None:
    async with await AsyncMemoryStore.open(url, settings=HASHING) as store, asking(store) as client:
        client.headers.update(bearer(tokens["bob"]))
        found = await crawled(client, "/ui/users/bob/spaces")
        there = {at.removeprefix("/ui/users/bob/spaces/otter") for at in found if "/spaces/otter" in at}
        assert {"", "/conversations", "/conversations/standup", "/facts", "/inbox", "/recall", "/members"} <= there
        assert all(page.wrong == [] for page in found.values())
        assert "heron" in found["/ui/users/bob/spaces/otter/conversations/standup"].text
        assert "otter for bob" in found["/ui/users/bob/spaces/otter"].text
        assert "carol" in found["/ui/users/bob/spaces/otter/members"].text
        client.headers.update(bearer(tokens["eve"]))
        for page in sorted(there):
            for user in ("eve", "bob"):
                answer = await client.get(f"/ui/users/{user}/spaces/otter{page}")
                assert answer.status_code == 404, page
                assert "heron" not in answer.text
