"""WhatsApp's chats: times without zones, dates of every country, who said what, and what WhatsApp itself says."""

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest

from memstore.errors import InvalidInput
from memstore.ingest.importers import importer_for
from memstore.ingest.importers.whatsapp import WhatsApp
from tests.unit.importing import Samples, ignored, read_file, records, texts, zipped

BERLIN = ZoneInfo("Europe/Berlin")
NAME = "WhatsApp Chat with Bob.txt"


CHAT = b"13.01.24, 10:00 - Ann: hello\n13.01.24, 10:01 - Bob: hello\n"
SAMPLES: Samples = {
    "whatsapp": (NAME, CHAT),
    "whatsapp zip": ("a.zip", zipped({"_chat.txt": CHAT})),
}


@pytest.fixture
def read(tmp_path):
    usual = {"me": "Ann", "timezone": BERLIN}
    return lambda text, name=NAME, **how: read_file(WhatsApp, tmp_path / name, text, **usual | how)


def times(found) -> list[str]:
    return [f"{record.message['occurred_at']:%Y-%m-%d %H:%M:%S}" for record in records(found)]


ANDROID = "13/12/19, 08:40 - Ann: hi\n13/12/19, 08:41 - Bob: hello\n"
IPHONE = "[13/12/19, 08:40:01] Ann: hi\r\n[13/12/19, 08:41:02] Bob: hello\r\n"


@pytest.mark.parametrize("text", [ANDROID, IPHONE, "\ufeff" + IPHONE])
def test_mine_are_without_a_name_and_the_others_have_theirs(read, tmp_path, text):
    mine, theirs = read(text)
    assert importer_for(tmp_path / NAME).name == "whatsapp"
    assert (mine.message["role"], mine.message["content"], mine.message.get("name")) == ("user", "hi", None)
    assert (theirs.message["role"], theirs.message["content"], theirs.message["name"]) == ("user", "hello", "Bob")
    assert (mine.conversation, mine.channel, mine.where) == (NAME[:-4], "whatsapp", f"{NAME}, line 1")
    assert mine.message["occurred_at"].tzinfo is UTC


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("13/12/19, 08:40 - Ann: x", "2019-12-13 07:40:00"),
        ("12/13/19, 8:40 AM - Ann: x", "2019-12-13 07:40:00"),
        ("12/13/19, 8:40\u202fpm - Ann: x", "2019-12-13 19:40:00"),
        ("12/13/19, 12:05 am - Ann: x", "2019-12-12 23:05:00"),
        ("13/12/2019, 12:05 p. m. - Ann: x", "2019-12-13 11:05:00"),
        ("13.12.19, 08:40 - Ann: x", "2019-12-13 07:40:00"),
        ("01.02.19, 08:40 - Ann: x", "2019-02-01 07:40:00"),
        ("2019-01-02, 08:40 - Ann: x", "2019-01-02 07:40:00"),
        ("2019/01/02, 08:40 - Ann: x", "2019-01-02 07:40:00"),
        ("[13.12.2019 klo 8.40.09] Ann: x", "2019-12-13 07:40:09"),
        ("\u200e[13.12.19, 08:40:09] Ann: x", "2019-12-13 07:40:09"),
        ("[13/12/2019, 8:40:09\u202fAM] Ann: x", "2019-12-13 07:40:09"),
        ("2019. 12. 13. 오후 9:25 - Ann: x", "2019-12-13 20:25:00"),
        ("[2019. 12. 13. 오전 9:25:01] Ann: x", "2019-12-13 08:25:01"),
        ("2019/12/13 下午9:25 - Ann: x", "2019-12-13 20:25:00"),
        ("[2019/12/13 中午12:25:01] Ann: x", "2019-12-13 11:25:01"),
        ("2019/12/13 午後9:25 - Ann: x", "2019-12-13 20:25:00"),
        ("١٣\u200f/١٢\u200f/٢٠١٩، ٩:٢٥ م - Ann: x", "2019-12-13 20:25:00"),
        ("13/12/19, 9:25 μ.μ. - Ann: x", "2019-12-13 20:25:00"),
        ('13.12.2019, 9:25 אחה"צ - Ann: x', "2019-12-13 20:25:00"),
        ("21:25, 13/12/2019 - Ann: x", "2019-12-13 20:25:00"),
        ("13/12/2019, 9:25 CH - Ann: x", "2019-12-13 20:25:00"),
        ("13.12.2019 ÖS 9:25 - Ann: x", "2019-12-13 20:25:00"),
        ("13/12/2562 21:25 - Ann: x", "2019-12-13 20:25:00"),
        ("13/12/2019, 21:25 – Ann: 9:00 - 9:30", "2019-12-13 20:25:00"),
    ],
)
def test_the_dates_of_many_countries(read, line, meant):
    assert times(read(line)) == [meant]


def test_an_order_that_nothing_tells_is_asked_for(read):
    text = "03/04/24, 10:00 - Ann: a\n04/05/24, 10:00 - Ann: b\n"
    with pytest.raises(InvalidInput, match="may be read in two ways; give --date-order dmy"):
        read(text)
    assert times(read(text, date_order="mdy"))[0] == "2024-03-04 09:00:00"
    assert times(read(text, date_order="dmy"))[0] == "2024-04-03 08:00:00"
    found = read("03/04/24, 10:00 - Ann: a\n01/05/24, 10:00 - Ann: b\n")  # the chat's own order tells
    assert times(found) == ["2024-04-03 08:00:00", "2024-05-01 08:00:00"]


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"timezone": None}, "such as --timezone Europe/Berlin"),
        ({"me": None}, "say who of them you are; --me takes one of: Ann, Bob"),
        ({"me": "Zoe"}, "nobody in it is called Zoe; --me takes one of: Ann, Bob"),
    ],
)
def test_what_only_a_person_knows_is_asked_for(read, how, words):
    with pytest.raises(InvalidInput, match=words):
        read(ANDROID, **how)


# --- what was said --------------------------------------------------------------------------------------------------


def test_lines_without_a_time_go_on_with_the_message(read):
    found = read("13.01.24, 10:00 - Ann: a\n\nb: c\n  d\n13.01.24, 10:01 - Bob: e\n")
    assert texts(found) == ["a\n\nb: c\n  d", "e"]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("<Media omitted>", "[media]"),
        ("<Medien ausgeschlossen>", "[media]"),
        ("\u200eimage omitted", "[image]"),
        ("\u200eBild weggelassen", "[Bild]"),
        ("<Anhang: 0001-PHOTO.jpg>", "[0001-PHOTO.jpg]"),
        ("IMG-1.jpg (Datei angehängt)\nschau", "[IMG-1.jpg]\nschau"),
        ("\u200e<attached: 0001-PHOTO.jpg>", "[0001-PHOTO.jpg]"),
        ("IMG-1.jpg (file attached)\nlook", "[IMG-1.jpg]\nlook"),
        ("look \u200e<attached: 0001-PHOTO.jpg>", "look [0001-PHOTO.jpg]"),
        ("\u200e<adjunto: 0002-PHOTO.jpg>", "[0002-PHOTO.jpg]"),
        ("\u200eIMG-20240113-WA0001.jpg (archivo adjunto)", "[IMG-20240113-WA0001.jpg]"),
        ("\u200eimagen omitida", "[imagen]"),
        ("\u200ePOLL:\nPool or lake?\n\u200eOPTION: Pool (2 votes)", "POLL:\nPool or lake?\nOPTION: Pool (2 votes)"),
        ("\u200eLocation: https://maps.example/?q=1,2", "Location: https://maps.example/?q=1,2"),
        ("\u200eHow about the lake?", "How about the lake?"),
        ("a < b > c", "a < b > c"),
        ("see https://x.example: fine", "see https://x.example: fine"),
    ],
)
def test_what_was_sent_besides_text_is_named(read, text, seen):
    assert texts(read(f"13.01.24, 10:00 - Ann: {text}\n")) == [seen]
    assert texts(read(f"[13.01.24, 10:00:00] Ann: {text}\n")) == [seen]


@pytest.mark.parametrize(
    ("encrypted", "renamed", "deleted", "edited"),
    [
        (
            "Messages and calls are end-to-end encrypted.",
            "Bob changed the subject from “x” to “y: z”",
            ("This message was deleted", "You deleted this message"),
            "This message was edited",
        ),
        (
            "Nachrichten und Anrufe sind Ende-zu-Ende-verschlüsselt.",
            "Bob hat den Betreff von „x“ zu „y: z“ geändert",
            ("Diese Nachricht wurde gelöscht.", "Du hast diese Nachricht gelöscht."),
            "Diese Nachricht wurde bearbeitet.",
        ),
        (
            "Los mensajes y las llamadas están cifrados de extremo a extremo.",
            "Bob cambió el asunto de “x” a “y: z”",
            ("Se eliminó este mensaje.", "Eliminaste este mensaje."),
            "Se editó este mensaje.",
        ),
        (
            "As mensagens e as chamadas são protegidas com a criptografia de ponta a ponta.",
            'Bob mudou o assunto de "x" para "y: z"',
            ("Mensagem apagada", "Você apagou esta mensagem"),
            "Mensagem editada",
        ),
        (
            "Les messages et les appels sont chiffrés de bout en bout.",
            "Bob a changé le sujet de « x » à « y: z »",
            ("Ce message a été supprimé", "Vous avez supprimé ce message"),
            "Ce message a été modifié",
        ),
        (
            "I messaggi e le chiamate sono crittografati end-to-end.",
            "Bob ha cambiato l'oggetto da “x” a “y: z”",
            ("Questo messaggio è stato eliminato", "Hai eliminato questo messaggio"),
            "Questo messaggio è stato modificato",
        ),
    ],
)
def test_what_whatsapp_says_is_left_out_and_counted(read, encrypted, renamed, deleted, edited):
    said = [encrypted, "Ann: a", renamed, f"Bob: {deleted[0]}", f"Ann: {deleted[1]}", f"~\u202fZoe: x \u200e<{edited}>"]
    found = read("".join(f"13.01.24, 10:0{minute} - {line}\n" for minute, line in enumerate(said)))
    assert texts(found) == ["a", "x"]
    assert (found[-1].message["name"], found[-1].message["metadata"]) == ("Zoe", {"edited": True})
    assert ignored(found) == {"notices of WhatsApp": 2, "deleted messages": 2}


@pytest.mark.parametrize(
    "notice",
    [
        "Messages and calls are end-to-end encrypted.",
        "Cat created this group",
        "Bob changed the group name",
        "Bob ha cambiado el ícono",
        "Missed voice call",
    ],
)
def test_notices_of_an_iphone_have_a_name_before_them(read, notice):
    found = read(f"[13.01.24, 10:00:00] Ann: a\n[13.01.24, 10:01:00] Bob: \u200e{notice}\n")
    assert (texts(found), ignored(found)) == (["a"], {"notices of WhatsApp": 1})


def test_a_contact_may_have_quotation_marks_in_the_name(read):
    found = read('13.01.24, 10:00 - Ann: a\n13.01.24, 10:01 - Bob "Bobby" Lee: The code is new: ask me\n')
    assert texts(found) == ["a", "The code is new: ask me"]
    assert found[1].message["name"] == 'Bob "Bobby" Lee'


def test_a_group_in_which_i_never_wrote_is_imported(read):
    found = read("13.01.24, 10:00 - Bob: a\n13.01.24, 10:01 - Cat: b\n", "WhatsApp Chat with House.txt")
    assert [record.message["name"] for record in records(found)] == ["Bob", "Cat"]
    assert ignored(found) == {"chats without a message of Ann": 1}
    with pytest.raises(InvalidInput, match="nobody in it is called Bobb; --me takes one of: Bob, Cat"):
        read("13.01.24, 10:00 - Bob: a\n13.01.24, 10:01 - Cat: b\n", "WhatsApp Chat with House.txt", me="Bobb")


@pytest.mark.parametrize("me", ["Bob", "bob", "BOB", "~ Bob"])
def test_me_is_either_name_in_any_case(read, me):
    ann, bob = read(ANDROID, me=me)
    assert (ann.message["name"], bob.message.get("name")) == ("Ann", None)


# --- names and ids --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "chat"),
    [
        (ANDROID, "WhatsApp Chat with Bob.txt", "WhatsApp Chat with Bob"),
        (ANDROID, "WhatsApp Chat with Bob (1).txt", "WhatsApp Chat with Bob"),
        (zipped({"_chat.txt": ANDROID}), "WhatsApp Chat - Bob.zip", "WhatsApp Chat - Bob"),
        (zipped({"WhatsApp Chat with Bob.txt": ANDROID}), "export.zip", "WhatsApp Chat with Bob"),
    ],
)
def test_a_chat_is_named_after_its_file_or_its_zip(read, tmp_path, text, name, chat):
    found = records(read(text, name))
    assert {record.conversation for record in found} == {chat}
    assert len(found) == 2
    assert importer_for(tmp_path / name).name == "whatsapp"


def test_ids_follow_from_the_clock_so_that_another_zone_or_me_adds_nothing(read):
    text = ANDROID + "13/12/19, 08:41 - Bob: hello\n"
    ids = [record.message["external_id"] for record in read(text)]
    assert len(set(ids)) == 3
    assert [one.message["external_id"] for one in read(text, me="Bob", timezone=UTC)] == ids
    assert [one.message["external_id"] for one in read(text + "13/12/19, 08:42 - Ann: new\n")][:3] == ids
