"""Gemini's activities: put in order, cut into conversations, prompts without their verb, answers without their HTML."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from memstore.ingest.importers import importer_for
from memstore.ingest.importers.gemini import Gemini, html_text
from tests.unit.importing import Samples, ignored, read_file, reasons, records, texts, zipped

START = datetime(2026, 7, 26, 6, 0, tzinfo=UTC)


SAMPLE = [{"title": "Prompted hello", "time": "2026-07-26T06:00:00Z", "products": ["Gemini Apps"]}]
SAMPLES: Samples = {
    "gemini": ("MyActivity.json", SAMPLE),
    "gemini zip": ("a.zip", zipped({"Takeout/Gemini Apps/MyActivity.json": json.dumps(SAMPLE)})),
}


def activity(title: object = "Prompted hello", minutes: float = 0, html: object = None, **more: object) -> dict:
    time = (START + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")
    kept = {"header": "Gemini Apps", "title": title, "time": time, "products": ["Gemini Apps"]}
    return kept | ({"safeHtmlItem": [{"html": html}]} if html is not None else {}) | more


@pytest.fixture
def read(tmp_path):
    return lambda *activities: read_file(Gemini, tmp_path / "MyActivity.json", activities)


def test_a_prompt_and_its_answer_come_in_the_keys_of_memstore_jsonl(read):
    prompt, answer = read(activity("Prompted Where to?", html="<p>Lisbon.</p>"))
    assert prompt.conversation == answer.conversation == "gemini 2026-07-26 06:00:00Z"
    assert (prompt.message["role"], prompt.message["content"]) == ("user", "Where to?")
    assert (answer.message["role"], answer.message["content"]) == ("assistant", "Lisbon.")
    assert prompt.message["occurred_at"] == answer.message["occurred_at"] == START
    assert (prompt.message["metadata"], answer.message["metadata"]) == ({}, {"occurred_at": "inherited"})
    assert prompt.message["external_id"] != answer.message["external_id"]
    assert (prompt.channel, prompt.where) == ("gemini", "MyActivity.json, activity 1")


def test_the_oldest_comes_first_and_half_an_hour_of_silence_ends_a_conversation(read):
    minutes = [0, 30, 59.9, 90, 300]
    found = read(*(activity(f"Prompted {at}", at) for at in reversed(minutes)))
    assert texts(found) == ["0", "30", "59.9", "90", "300"]
    assert [record.conversation[-9:] for record in found] == ["06:00:00Z"] * 3 + ["07:30:00Z", "11:00:00Z"]


def test_a_later_export_gives_the_same_ids(read):
    old = [activity("Prompted a", 0), activity("Prompted b", 1), activity("Prompted b", 1)]
    first = records(read(*old))
    again = records(read(activity("Prompted c", 2), *old))
    assert [(one.conversation, one.message["external_id"]) for one in again[:3]] == [
        (one.conversation, one.message["external_id"]) for one in first
    ]
    assert len({one.message["external_id"] for one in again}) == 4


@pytest.mark.parametrize(
    ("title", "prompt"),
    [
        ("Prompted with: a b", "a b"),
        ("Asked Gemini: a", "a"),
        ("Asked Bard a", "a"),
        ("Said a\nb", "a\nb"),
        ("Answered a", "a"),
        ("Prompted", "Prompted"),
        ("Gefragt: a", "Gefragt: a"),
    ],
)
def test_the_verb_before_a_prompt_is_left_out_where_it_is_known(read, title, prompt):
    assert texts(read(activity(title))) == [prompt]


def test_activities_that_are_no_prompts_are_counted_and_malformed_ones_named(read):
    titles = ("Used Gemini", "Gave feedback", "Created a canvas", "Prompted a")
    bad = [None, activity(time="2026-07-26")]
    found = read(*(activity(title) for title in titles), *bad, activity("Prompted b", 1, safeHtmlItem=[{}]))
    assert (texts(found), len(reasons(found))) == (["a", "b"], 2)
    assert ignored(found) == {"activities that are no prompts": 3}


def test_of_a_takeout_only_geminis_activities_are_read(tmp_path):
    path = tmp_path / "takeout.zip"
    files = {"Takeout/archive_browser.html": "<html>"}
    files["Takeout/My Activity/Search/My Activity.json"] = json.dumps([activity("Searched for x")])
    files["Takeout/My Activity/Gemini Apps/My Activity.json"] = json.dumps([activity("Prompted a")])
    path.write_bytes(zipped(files))
    assert importer_for(path).name == "gemini"
    assert texts(Gemini(path).read()) == ["a"]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>a  b\nc</p><p>d</p>", "a b c\n\nd"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("<ul><li>a</li><li><p>b</p></li></ul>", "- a\n- b"),
        ("<h2>A</h2><pre><code>if x:\n    y &lt; 1</code></pre>", "A\n\nif x:\n    y < 1"),
        ("<style>p {}</style><script>x</script>a", "a"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc"),
        ("a &amp; <b>b</b>", "a & b"),
        ("<p>never closed <i>a", "never closed a"),
    ],
)
def test_html_becomes_what_a_reader_sees(html, text):
    assert html_text(html) == text


def test_a_conversation_is_that_of_its_address(read):
    def of(key: str, title: str, minutes: float) -> dict:
        return activity(title, minutes, details=[{"name": "x", "url": f"https://gemini.google.com/app/{key}"}])

    found = read(of("aa", "Prompted c", 600), of("bb", "Prompted b", 5), of("aa", "Prompted a", 0))
    assert [(one.conversation, one.message["content"]) for one in found] == [
        ("gemini aa", "a"),
        ("gemini bb", "b"),
        ("gemini aa", "c"),
    ]


def test_of_other_products_nothing_is_taken(read):
    other = {"header": "Search", "products": ["Search"]}
    found = read(activity("Visited Gemini", **other), activity("Cleared your Gemini Apps activity"), activity())
    assert texts(found) == ["hello"]
    assert ignored(found) == {"activities of other products": 1, "activities that are no prompts": 1}
