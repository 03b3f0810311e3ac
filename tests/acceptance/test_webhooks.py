"""Webhooks: what a receiver on this machine is sent, and knows to be memstore's by the steps of the specification."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

import memstore
from memstore import InvalidInput, ids
from memstore.client.worker import WorkingStore
from memstore.derive import webhooks, worker as worker_module
from memstore.models import Certificate, ErasureScope
from memstore.store import facts, queue
from tests.command_line import Run
from tests.working import HASHING, number, until, working

WAITING = """
select (select count(*) from webhook_events)
     + (select count(*) from procrastinate_jobs where task_name = 'memstore.webhook' and args <> '{}')"""


class Delivery(NamedTuple):
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        event: dict[str, Any] = json.loads(self.body)
        return event

    def is_signed(self, secret: str) -> bool:
        """Return whether the signature is right and fresh: the specification's steps, by other functions than ours."""
        seconds = self.headers["webhook-timestamp"]
        signed = b".".join([self.headers["webhook-id"].encode(), seconds.encode(), self.body])
        key = base64.b64decode(secret.split("_", 1)[1])
        right = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        versions = [entry.split(",") for entry in self.headers["webhook-signature"].split(" ")]
        return ["v1", right] in versions and abs(time.time() - int(seconds)) < 300


class Receiver:
    """A receiver at a free port; it answers with these statuses, the last of them for good."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.statuses: Sequence[int] = [204]
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.deliveries.append(
                    Delivery({name.lower(): value for name, value in self.headers.items()}, body)
                )
                place = min(len(receiver.deliveries), len(receiver.statuses)) - 1
                self.send_response(receiver.statuses[place])
                if 300 <= receiver.statuses[place] < 400:
                    self.send_header("location", receiver.url)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/memory"

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [delivery.event["data"] for delivery in self.deliveries if delivery.event["type"] == kind]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = Thread(target=receiver.server.serve_forever, args=(0.05,))
    thread.start()
    yield receiver
    receiver.server.shutdown()
    thread.join()
    receiver.server.server_close()


@pytest.fixture
async def store(url: str) -> AsyncIterator[WorkingStore]:
    async with await WorkingStore.open(url, settings=HASHING) as store:
        yield store


async def deliver(store: WorkingStore, url: str) -> None:
    """Run a worker until nothing waits."""

    async def done() -> bool:
        return number(url, WAITING) == 0

    async with working(store):
        await until(done)


async def add(store: WorkingStore, text: str, user: str = "alice", **columns: Any) -> str:
    return str((await store.user(user).add_fact(text, **columns)).id)


def test_a_signature_is_the_one_of_the_specification_s_example() -> None:
    headers = webhooks.sign(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


async def test_what_happens_to_facts_and_an_erasure_are_told_signed_and_without_a_text(
    store: WorkingStore, url: str, receiver: Receiver
) -> None:
    webhook = await store.webhooks.add(receiver.url)
    alice = store.user("alice")
    leeds = await add(store, "Alice lives in Leeds.", attribute="residence", value="Leeds")
    ghent = await add(store, "Alice lives in Ghent.", attribute="residence", value="Ghent")
    await alice.conversation("talk").add("user", "My sister is called Noor.")
    await store.derive()
    [derived] = [str(fact.id) for fact in await alice.facts() if "Noor" in fact.text]
    certificate = await alice.conversation("talk").erase()
    await deliver(store, url)
    assert webhook.secret is not None
    assert all(delivery.is_signed(webhook.secret) for delivery in receiver.deliveries)
    assert not any(name in delivery.body for delivery in receiver.deliveries for name in (b"Leeds", b"Ghent", b"Noor"))
    user = {"user_id": str(ids.user_id("alice")), "user": "alice"}
    created = [user | {"fact": fact, "kind": "semantic"} for fact in (leeds, ghent)]
    assert receiver.events("fact.created") == created, "what was erased meanwhile is not told"
    assert derived not in str(receiver.deliveries)
    assert receiver.events("fact.superseded") == [user | {"fact": leeds, "by": ghent, "kind": "semantic"}]
    counts = {name: rows for name, rows in certificate.counts.items() if name != "jobs"}
    assert receiver.events("erasure.done") == [
        user | {"erasure": str(certificate.id), "scope": "conversation", "counts": counts}
    ]
    assert len({delivery.headers["webhook-id"] for delivery in receiver.deliveries}) == 4


async def test_what_waits_for_review_is_told_when_it_is_accepted_and_what_was_not_done_never(
    store: WorkingStore, url: str, receiver: Receiver
) -> None:
    await store.webhooks.add(receiver.url, events=["fact.created"])
    alice = store.user("alice")
    await alice.conversation("talk").add("user", "My sister is called Noor. I work as a baker.")
    await store.derive(review=True)
    accepted, refused = (item.fact for item in await alice.inbox())
    proposed = await alice.add_fact("Alice likes tea.", quarantined=True)
    with pytest.raises(ZeroDivisionError):
        async with store._database.user_transaction(ids.user_id("alice")) as tx:
            await facts.add(tx, accepted.model_copy(update={"id": uuid4(), "state": "active"}))
            raise ZeroDivisionError
    async with store._database.user_transaction(ids.user_id("alice")) as tx:
        await facts.add(tx, accepted.model_copy(update={"id": uuid4(), "state": "active"}))
        await tx.roll_back()
    await alice.erase(dry_run=True)
    assert number(url, WAITING) == 0
    await alice.review(accept=[accepted], refuse=[refused])
    await alice.confirm_fact(proposed)
    await deliver(store, url)
    assert [event["fact"] for event in receiver.events("fact.created")] == [str(accepted.id), str(proposed.id)]


async def test_a_delivery_that_fails_is_made_again_under_its_id(
    store: WorkingStore, url: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhooks, "RETRY_SECONDS", (1,) * 9)
    receiver.statuses = [500, 302, 200]
    webhook = await store.webhooks.add(receiver.url)
    await add(store, "Alice likes tea.")
    await deliver(store, url)
    assert webhook.secret is not None
    assert [delivery.is_signed(webhook.secret) for delivery in receiver.deliveries] == [True] * 3
    first, *others = receiver.deliveries
    assert all(other.headers["webhook-id"] == first.headers["webhook-id"] for other in others)
    assert all(other.body == first.body for other in others)
    assert others[-1].headers["webhook-timestamp"] > first.headers["webhook-timestamp"], "signed anew"
    [kept] = await store.webhooks.all()
    assert (kept.last_error, kept.disabled_at) == ("status 302", None)


async def test_the_last_attempt_leaves_no_job(
    store: WorkingStore, url: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for module in (webhooks, worker_module):
        monkeypatch.setattr(module, "RETRY_SECONDS", (0,))
    receiver.statuses = [500]
    await store.webhooks.add(receiver.url)
    await add(store, "Alice likes tea.")
    await deliver(store, url)
    assert len(receiver.deliveries) == 2
    assert number(url, "select count(*) from procrastinate_jobs where queue_name = 'webhooks'") == 0
    assert "status 500; the last attempt" in caplog.text


async def test_a_webhook_that_answers_410_or_is_removed_is_sent_nothing_more(
    store: WorkingStore, url: str, receiver: Receiver
) -> None:
    gone, removed = await store.webhooks.add(receiver.url), await store.webhooks.add(receiver.url + "/removed")
    receiver.statuses = [410]
    await add(store, "Alice likes tea.")
    await queue.enqueue_events(store._database)
    assert number(url, WAITING) == 2
    await store.webhooks.remove(removed)
    assert number(url, WAITING) == 1
    await deliver(store, url)
    [disabled] = await store.webhooks.all()
    assert disabled.id == gone.id and disabled.disabled_at is not None
    await add(store, "Alice likes milk.")
    assert number(url, WAITING) == 0
    assert len(receiver.deliveries) == 1


async def test_the_erasure_of_a_user_takes_what_waits_to_be_told_of_them_but_the_erasure(
    store: WorkingStore, url: str, receiver: Receiver
) -> None:
    await store.webhooks.add(receiver.url)
    fact = await store.user("alice").add_fact("Alice likes tea.")
    await queue.enqueue_events(store._database)
    assert not (await store.verify_erasure(Certificate(ErasureScope.FACT, fact.user_id, (fact.id,)))).is_clean
    erased = await store.user("alice").erase_fact(fact)
    assert number(url, WAITING) == 1, "the erasure alone"
    assert (await store.verify_erasure(erased)).is_clean
    await add(store, "Alice likes milk.")
    await queue.enqueue_events(store._database)
    await add(store, "Alice likes water.")
    bob = await add(store, "Bob likes milk.", user="bob")
    certificate = await store.user("alice").erase()
    assert (await store.verify_erasure(certificate)).is_clean
    await queue.enqueue_events(store._database)
    assert (await store.verify_erasure(certificate)).is_clean
    assert number(url, WAITING) == 3, "two erasures, and of another user"
    await deliver(store, url)
    assert [event["fact"] for event in receiver.events("fact.created")] == [bob]
    [of_fact, of_user] = receiver.events("erasure.done")
    assert (of_fact["erasure"], of_fact["user"]) == (str(erased.id), None)
    assert (of_user["erasure"], of_user["user_id"]) == (str(certificate.id), str(ids.user_id("alice")))


async def test_a_job_that_an_erasure_could_not_reach_sends_nothing(
    store: WorkingStore, url: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise memstore.DatabaseError("permission denied")

    await store.webhooks.add(receiver.url, events=["fact.created"])
    await add(store, "Alice likes tea.")
    await queue.enqueue_events(store._database)
    monkeypatch.setattr(queue, "clear_deliveries", refuse)
    certificate = await store.user("alice").erase()
    assert "jobs are left" in certificate.hints[-1] and number(url, WAITING) == 1
    await deliver(store, url)
    assert receiver.deliveries == []


async def test_a_url_that_nothing_can_be_sent_to_is_refused(store: WorkingStore) -> None:
    refused: list[Any] = [
        "",
        "example.com",
        "ftp://example.com",
        "http://",
        "https://a:b@example.com",
        "http://[",
        None,
    ]
    for given in [*refused, "https://example.com/ä", "https://example.com/ x", "https://example.com:x"]:
        with pytest.raises(InvalidInput, match="url="):
            await store.webhooks.add(given)


def test_the_command_line_adds_lists_and_removes(cli: Run, url: str) -> None:
    added = cli("webhooks", "add", "https://example.com/memory", "--events", "erasure.done", "--json", "-d", url).json
    assert added["secret"].startswith("whsec_") and added["events"] == ["erasure.done"]
    [listed] = cli("webhooks", "list", "--json", "-d", url).json
    assert listed == {name: value for name, value in added.items() if name != "secret"}
    assert "example.com" in cli("webhooks", "list", "-d", url).out
    assert cli("webhooks", "remove", added["id"], "-d", url).code == 0
    assert cli("webhooks", "remove", added["id"], "-d", url).code == 2
    refused = cli("webhooks", "add", "https://example.com", "--events", "fact.eaten", "-d", url)
    assert refused.code == 2 and "fact.superseded" in refused.err
