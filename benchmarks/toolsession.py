"""A long session of an assistant with tools, drawn from a seed, and what is asked about it later.

Three kinds of work alternate (code, research, travel) in a dozen scenes: test logs, stack traces, searches, listings,
files, pages, tables, bookings, errors, calls in parallel and without ids. Most tokens are noise, as in real sessions.
A question's evidence is a string that somebody would ask for afterwards: in the user's words, in a call's arguments, in
what the assistant said, or in a result. Half of what results mean is never said again by anybody. The hardest kind is
"aside": it is in a result but was not wanted, and nobody had it in mind when the tool was called.
"""

# ruff: noqa: E501, SIM905
from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

Chat = dict[str, Any]

MODULES = (
    "billing cache client config crawler index ledger mailer parser payments queue router scheduler search".split()
)
VERBS = "apply build check close collect commit flush load merge open parse reset resolve retry send split sync".split()
NOUNS = (
    "account batch cursor entry event frame header invoice job key lock order page record session token user".split()
)
CITIES = "Lisbon Porto Vienna Turin Lyon Ghent Bergen Gdansk Seville Utrecht Bologna Leipzig Tartu Aarhus".split()
PEOPLE = "Mara Jonas Priya Tomas Ines Bela Oskar Noor Felix Greta".split()
TOPICS = (
    "heat pumps in old houses|sleep and shift work|soil carbon after no-till farming|battery recycling|urban noise and"
    " blood pressure|online reading in schools|grid storage costs|vitamin D in winter|bike lanes and retail sales"
).split("|")
FILLER = (
    "the data of the last years show a mixed picture|several authors disagree on how to weigh these effects|local rules"
    " differ widely between regions|costs depend on the state of the building|most of the earlier work was small|further"
    " research is under way in three countries|critics point to gaps in how the samples were drawn|the figures were"
    " adjusted for age and income|industry groups welcomed the report|the method has been described elsewhere in"
    " detail|a follow-up is planned when funds allow|older reviews came to other conclusions|the effect was smaller in"
    " rural areas|weather explains a part of the difference|it is hard to tell cause from coincidence here"
).split("|")


@dataclass(frozen=True)
class Asked:
    """A question, the string that answers it, and where that stands: user, said, argument, result or aside."""

    question: str
    evidence: str
    where: str


@dataclass
class Session:
    """The messages so far and the questions about them."""

    random: Random
    messages: list[Chat] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    calls: int = 0

    def user(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})

    def says(self, text: str) -> None:
        self.messages.append({"role": "assistant", "content": text})

    def call(self, name: str, arguments: Chat, result: object, beside: str | None = None) -> None:
        self.together([(name, arguments, result)], beside)

    def together(self, made: list[tuple[str, Chat, object]], beside: str | None = None) -> None:
        """Make calls in parallel; some clients give no ids."""
        calls, results = [], []
        named = self.random.random() < 0.9
        for name, arguments, result in made:
            self.calls += 1
            identity = {"id": f"call_{self.calls:05d}"} if named else {}
            function = {"name": name, "arguments": json.dumps(arguments)}
            calls.append({**identity, "type": "function", "function": function})
            content = result if isinstance(result, str) else json.dumps(result, indent=self.random.choice([None, 2]))
            answer = {"tool_call_id": identity["id"]} if named else {}
            results.append({"role": "tool", "content": content, **answer})
        self.messages.append({"role": "assistant", "content": beside, "tool_calls": calls})
        self.messages += results

    def ask(self, question: str, evidence: object, where: str) -> None:
        self.asked.append(Asked(question, str(evidence), where))

    def code(self, alphabet: str = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789", length: int = 6) -> str:
        return "".join(self.random.choice(alphabet) for _ in range(length))

    def path(self) -> str:
        return f"src/{self.random.choice(MODULES)}/{self.random.choice(NOUNS)}_{self.random.choice(VERBS)}.py"

    def prose(self, sentences: int) -> str:
        return " ".join(self.random.choice(FILLER).capitalize() + "." for _ in range(sentences))


def failing_test(s: Session) -> None:
    path, test = s.path(), f"test_{s.random.choice(VERBS)}_{s.random.choice(NOUNS)}_{s.random.randint(10, 99)}"
    line, wanted, got = s.random.randint(20, 400), s.random.randint(100, 999), s.random.randint(1000, 9999)
    passed, seconds = s.random.randint(40, 400), s.random.randint(200, 9900) / 100
    s.user(
        f"Tests around {path} fail since this morning on the branch fix/{s.code('abcdef0123456789', 5)}. Have a look?"
    )
    noise = "\n".join(
        f"tests/test_{s.random.choice(MODULES)}.py {'.' * s.random.randint(10, 60)} [{n * 4}%]" for n in range(25)
    )
    frames = "\n".join(
        f'  File "{s.path()}", line {s.random.randint(1, 300)}, in {s.random.choice(VERBS)}_{s.random.choice(NOUNS)}\n'
        f"    return self._{s.random.choice(VERBS)}({s.random.choice(NOUNS)})"
        for _ in range(s.random.randint(4, 14))
    )
    error = f"ValueError: {s.random.choice(NOUNS)} total is {got}, expected {wanted}"
    s.call(
        "run_tests",
        {"path": "tests", "keyword": path.split("/")[1], "verbose": True, "timeout": 600},
        f"============ test session starts ============\nplatform linux, pytest-8.2.1\ncollected {passed + 1} items\n\n"
        f"{noise}\n\n=== FAILURES ===\n____ {test} ____\nTraceback (most recent call last):\n{frames}\n"
        f'  File "{path}", line {line}, in check\n    raise ValueError(message)\n{error}\n'
        f"=== short test summary info ===\nFAILED tests/test_{path.split('/')[1]}.py::{test} - {error}\n"
        f"=== 1 failed, {passed} passed in {seconds:.2f}s ===",
        s.random.choice([None, "I run the tests of that module first."]),
    )
    s.ask(f"Which test failed around {path}?", test, "result")
    s.ask(f"What did {test} complain of?", error, "result")
    s.ask(f"Where was the error of {test} raised?", f"line {line}", "result")
    s.ask(f"How many tests passed when {test} failed?", f"{passed} passed", "result")
    body = "\n".join(
        f"    {s.random.choice(NOUNS)}_{n} = {s.random.choice(VERBS)}({s.random.choice(NOUNS)})" for n in range(60)
    )
    s.call("read_file", {"path": path, "start": max(1, line - 30), "end": line + 30}, f"def check(self):\n{body}")
    backup = f"/tmp/{s.code()}.bak"
    sha, new = (
        s.code("abcdef0123456789", 8),
        f"{s.random.choice(NOUNS)}_total = sum_{s.random.choice(NOUNS)}s(rows, {wanted})",
    )
    s.call(
        "edit_file",
        {"path": path, "old": f"    total = {got}", "new": f"    {new}"},
        {"ok": True, "path": path, "changed_lines": 1, "backup": backup, "revision": sha},
        f"The rounding happens twice, so I take the sum of rows instead (ticket OPS-{wanted}{line}).",
    )
    s.ask(f"Which revision came out of the edit of {path}?", sha, "result")
    s.ask(f"Where is the copy of {path} from before the edit?", backup, "aside")
    s.ask(f"What was written into {path}?", new, "argument")
    s.ask(f"Which ticket stands for the double rounding in {path}?", f"OPS-{wanted}{line}", "said")
    if s.random.random() < 0.5:
        s.says(f"Mended: {test} failed because the total was rounded twice. All {passed + 1} tests pass now.")
    else:
        s.says("Done, all green again.")


def find_definition(s: Session) -> None:
    name = f"{s.random.choice(VERBS)}_{s.random.choice(NOUNS)}_{s.random.randint(2, 99)}"
    place, line = s.path(), s.random.randint(10, 700)
    s.user(f"Where is {name} defined, and who uses it?")
    rows = [
        f"{s.path()}:{s.random.randint(1, 800)}:        {s.random.choice(NOUNS)} = self.{name}({s.random.choice(NOUNS)})"
        for _ in range(45)
    ]
    rows.insert(s.random.randint(0, 45), f"{place}:{line}:    def {name}(self, {s.random.choice(NOUNS)}):")
    s.call("grep", {"pattern": name, "path": "src", "recursive": True}, "\n".join(rows))
    s.ask(f"Where is {name} defined?", f"{place}:{line}", "result")
    s.says(
        f"It is defined at {place}:{line}; 45 places use it."
        if s.random.random() < 0.5
        else "There is one definition and 45 places use it; nothing looks unusual."
    )


def setting_in_file(s: Session) -> None:
    path, name, value = s.path(), f"MAX_{s.random.choice(NOUNS).upper()}S", s.random.randint(101, 9999)
    s.user(f"What is the limit {name} in {path} set to?")
    lines = [
        f"{s.random.choice(NOUNS).upper()}_{s.random.choice(VERBS).upper()} = {s.random.randint(1, 99)}"
        for _ in range(70)
    ]
    lines.insert(s.random.randint(0, 70), f"{name} = {value}")
    s.call("read_file", {"path": path}, "\n".join(lines))
    s.ask(f"What is {name} in {path}?", f"{value}", "result")
    s.says(f"{name} is {value}." if s.random.random() < 0.6 else "It is set near the top of the file, as you thought.")


def deploy(s: Session) -> None:
    service, revision, image = (
        s.random.choice(MODULES),
        f"r-{s.random.randint(1000, 9999)}",
        f"sha256:{s.code('abcdef0123456789', 12)}",
    )
    region = s.random.choice(["eu-west-1", "eu-central-2", "us-east-2", "ap-south-1"])
    s.user(f"Deploy {service} to staging in {region}, please; keep the old one for {s.random.randint(2, 20)} hours.")
    steps = [
        f"2024-0{s.random.randint(1, 9)}-1{n % 10}T10:{n:02d}:0{n % 10}Z INFO step {n}: layer {s.code('abcdef0123456789', 10)} pushed"
        for n in range(40)
    ]
    failed = s.random.random() < 0.4
    if failed:
        code = f"E{s.random.randint(1000, 9999)}"
        why = f"quota of {s.random.randint(11, 99)} instances in {region} is used up"
        s.call(
            "deploy",
            {"service": service, "environment": "staging", "region": region},
            {"error": {"code": code, "message": why, "retryable": False, "trace": [s.code() for _ in range(30)]}},
        )
        s.ask(f"With which code did the first deploy of {service} to {region} fail?", code, "result")
        s.ask(f"Why could {service} not be deployed to {region} at first?", why, "result")
        s.user(f"Then scale {s.random.choice(MODULES)} down first and try again.")
    s.call(
        "deploy",
        {"service": service, "environment": "staging", "region": region, "image": image, "keep_hours": 6},
        "\n".join(
            [
                *steps,
                f"Deployed revision {revision} of {service} to staging",
                f"URL https://{service}-{revision}.staging.example.com",
            ]
        ),
    )
    s.ask(f"At which address is {service} {revision}?", f"https://{service}-{revision}.staging.example.com", "aside")
    s.ask(f"Which revision of {service} is on staging in {region}?", revision, "result")
    s.ask(f"Which image of {service} was deployed to {region}?", image, "argument")
    s.says(f"{service} {revision} is on staging." if s.random.random() < 0.5 else "It is live on staging.")


def listing(s: Session) -> None:
    folder, total = f"data/{s.random.choice(MODULES)}/{s.random.choice(NOUNS)}", s.random.randint(60, 95)
    s.user(f"What is in {folder}, and how big is it?")
    rows = [
        f"-rw-r--r-- 1 app app {s.random.randint(100, 99999):>7} May {n % 28 + 1:>2} 09:{n % 60:02d} {s.random.choice(NOUNS)}-{s.code().lower()}.parquet"
        for n in range(total)
    ]
    size = f"{s.random.randint(10, 99)}.{s.random.randint(0, 9)} GB"
    s.call(
        "shell",
        {"command": f"ls -l {folder} && du -sh {folder}", "cwd": "/srv/app"},
        "\n".join([f"total {total}", *rows, f"{size}\t{folder}"]),
    )
    s.ask(f"Which is the first file in {folder}?", rows[0].split()[-1], "aside")
    s.ask(f"How big is {folder}?", size, "result")
    s.says(
        f"{total} files of parquet, {size} in all." if s.random.random() < 0.5 else "Only parquet files, nothing else."
    )


def search_and_read(s: Session) -> None:
    topic, people, months = (
        s.random.choice(TOPICS),
        f"{s.random.randint(1, 9)},{s.random.randint(100, 999)}",
        s.random.randint(13, 59),
    )
    s.user(
        f"Find a solid study on {topic}. Nothing older than {s.random.randint(2015, 2021)}, and I need the size of its sample."
    )
    results = [
        {
            "rank": n + 1,
            "title": f"{s.random.choice(FILLER).capitalize()} ({s.random.randint(2012, 2024)})",
            "url": f"https://{s.random.choice(MODULES)}.example.org/{s.code().lower()}",
            "snippet": s.prose(3),
            "score": round(0.95 - n * 0.05, 2),
        }
        for n in range(12)
    ]
    chosen = results[s.random.choice([0, 0, 1, 2, 4])]
    s.call(
        "web_search",
        {"query": f"{topic} cohort study", "limit": 12, "language": "en"},
        {"total": s.random.randint(1000, 99999), "took_ms": 212, "results": results},
        s.random.choice([None, "I look for cohort studies first."]),
    )
    effect = f"{s.random.randint(11, 48)}.{s.random.randint(1, 9)} percent"
    at = s.random.randint(8, 30)
    page = f"{s.prose(at)} The study followed {people} participants over {months} months. {s.prose(6)} In the main analysis the measured effect on the outcome was {effect}. {s.prose(34 - at)}"
    s.call("fetch_page", {"url": chosen["url"], "format": "text"}, page)
    s.ask(f"Which page on {topic} was read?", chosen["url"], "argument")
    s.ask(f"What is the title of the page on {topic}, {chosen['url']}?", chosen["title"], "result")
    s.ask(f"How long did the study on {topic} of {chosen['url']} run?", f"{months} months", "aside")
    s.ask(f"How many took part in the study on {topic} of {chosen['url']}?", people, "result")
    s.ask(f"How large was the effect in the study on {topic} of {chosen['url']}?", effect, "result")
    s.says(
        f"The study followed {people} people for {months} months and found {effect}."
        if s.random.random() < 0.5
        else "I found one that fits: large, recent, with a follow-up of years. Shall I summarize it?"
    )


def table_query(s: Session) -> None:
    year, metric = s.random.randint(2018, 2024), s.random.choice(["revenue", "refunds", "sign-ups", "tickets"])
    s.user(
        f"Which city had the highest {metric} in {year}? Leave out test accounts, as always: tenant id above {s.random.randint(5000, 9999)}."
    )
    values = sorted((s.random.randint(10_000, 999_999) for _ in range(40)), reverse=True)
    ordered = s.random.random() < 0.6
    rows = [(f"{s.random.choice(CITIES)}-{n:02d}", value, s.random.randint(1, 99)) for n, value in enumerate(values)]
    best, second = rows[0], rows[1]
    if not ordered:
        s.random.shuffle(rows)
    head, bar = f"| city | {metric} | share |", "|---|---|---|"
    body = "\n".join(f"| {city} | {value} | {share} |" for city, value, share in rows)
    sql = (
        f"SELECT city, sum({metric.replace('-', '_')}) FROM sales_{year} WHERE tenant <= {s.random.randint(5000, 9999)} GROUP BY 1"
        + (" ORDER BY 2 DESC" if ordered else "")
    )
    s.call(
        "sql_query", {"database": "warehouse", "sql": sql}, f"{head}\n{bar}\n{body}\n(40 rows, {sum(values)} in total)"
    )
    s.ask(f"What was asked of the warehouse for {metric} in {year}?", sql, "argument")
    s.ask(f"How much {metric} was there in total in {year}?", sum(values), "result")
    if ordered or s.random.random() < 0.7:
        s.ask(f"Which city had the highest {metric} in {year}?", best[0], "result")
        s.ask(f"How high was the highest {metric} in {year}?", best[1], "result")
    s.ask(f"Which city came second in {metric} in {year}?", second[0], "aside")
    s.says(
        f"{best[0]}, with {best[1]}."
        if s.random.random() < 0.6 or not ordered
        else "The first row is the answer; the others are far behind."
    )


def flight(s: Session) -> None:
    start, end = s.random.sample(CITIES, 2)
    person, cap, day = (
        s.random.choice(PEOPLE),
        s.random.randint(300, 900),
        f"2024-{s.random.randint(5, 9):02d}-{s.random.randint(10, 28)}",
    )
    s.user(
        f"Book {person} from {start} to {end} on {day}. At most {cap} EUR, aisle seat, passport ends in {s.random.randint(1000, 9999)}."
    )
    s.ask(f"What is the cap for {person}'s flight from {start} to {end} on {day}?", f"{cap} EUR", "user")
    offers = [
        {
            "offer_id": f"off_{s.code()}",
            "carrier": s.code("ABCDEFGH", 2),
            "flight": f"{s.code('ABCDEFGH', 2)}{s.random.randint(100, 9999)}",
            "departs": f"{day}T{s.random.randint(5, 21):02d}:{s.random.choice([10, 25, 40])}",
            "stops": s.random.randint(0, 2),
            "price": s.random.randint(120, 1400) + 0.5,
            "currency": "EUR",
        }
        for _ in range(15)
    ]
    chosen = min(offers, key=lambda offer: offer["price"])
    traveller = (f"pax_{s.code()}", s.random.choice(["FREQ", "BASIC", "GOLD"]) + str(s.random.randint(10**6, 10**7)))
    s.together(
        [
            (
                "search_flights",
                {"origin": start, "destination": end, "date": day, "adults": 1, "max_price": cap},
                offers if s.random.random() < 0.5 else {"offers": offers, "currency": "EUR", "searched": 412},
            ),
            (
                "traveller_profile",
                {"name": person},
                {"id": traveller[0], "name": person, "loyalty": traveller[1], "seat": "aisle", "meal": "vegetarian"},
            ),
        ]
    )
    s.ask(f"What is {person}'s loyalty number, the one of {traveller[0]}?", traveller[1], "result")
    ticket = f"220-{s.random.randint(10**9, 10**10)}"
    pnr, until, total = (
        s.code(),
        f"2024-{s.random.randint(3, 4):02d}-{s.random.randint(10, 28)}T18:00",
        f"{chosen['price']:.2f}",
    )
    s.call(
        "book_flight",
        {"offer_id": chosen["offer_id"], "traveller_id": traveller[0], "seat": "aisle", "payment": "company-card"},
        {
            "status": "confirmed",
            "booking": {
                "reference": pnr,
                "total": total,
                "currency": "EUR",
                "cancel_free_until": until,
                "ticket": ticket,
                "segments": [chosen],
                "fare_rules": {"text": s.prose(12), "code": s.code()},
            },
        },
        s.random.choice([None, f"The cheapest fits under {cap} EUR, so I take it."]),
    )
    s.ask(f"Which offer was booked for {person} to {end} on {day}?", chosen["offer_id"], "argument")
    s.ask(f"What is the reference of {person}'s booking to {end} on {day}?", pnr, "result")
    s.ask(f"Until when can {person}'s flight to {end} on {day} be cancelled?", until, "result")
    s.ask(f"What is the number of {person}'s ticket to {end} on {day}?", ticket, "aside")
    s.ask(f"Which flight does {person} take to {end} on {day}?", chosen["flight"], "result")
    s.says(
        f"{person} flies {chosen['flight']} for {total} EUR; reference {pnr}."
        if s.random.random() < 0.5
        else f"Booked for {person}, within the limit."
    )


def hotel(s: Session) -> None:
    city, nights, who = s.random.choice(CITIES), s.random.randint(2, 9), s.random.choice(PEOPLE)
    rows = [
        (
            f"Hotel {s.random.choice(NOUNS).capitalize()} {s.random.choice(PEOPLE)} {n}",
            s.random.randint(60, 290),
            s.random.randint(60, 99) / 10,
            f"h{s.random.randint(10_000, 99_999)}",
        )
        for n in range(25)
    ]
    picked = s.random.choice(rows)
    s.user(f"I need a hotel in {city} for {nights} nights for {who}, quiet, near the station.")
    s.call(
        "search_hotels",
        {"city": city, "nights": nights, "sort": "distance"},
        "name\tprice\trating\tid\n" + "\n".join("\t".join(map(str, row)) for row in rows),
    )
    s.says(f"There are 25. {rows[0][0]} is the nearest, {rows[1][0]} comes next, {picked[0]} is the quietest.")
    reason = s.random.choice(["my mother liked it", "it has a lift", "they keep luggage", "the last one was too loud"])
    s.user(f"Take {picked[0]}: {reason}. And invoice it to cost centre CC-{s.random.randint(1000, 9999)}.")
    s.ask(f"Why was {picked[0]} in {city} chosen?", reason, "user")
    door = s.random.randint(1000, 9999)
    number = f"HB{s.random.randint(10**6, 10**7)}"
    s.call(
        "book_hotel",
        {"hotel_id": picked[3], "nights": nights, "guest": who},
        f"Booking {number} confirmed.\nGuest: {who}\n{s.prose(10)}\nCheck-in from 15:00 with code {door}#.\n{s.prose(5)}",
    )
    s.ask(f"What is the price of {picked[0]} in {city} a night?", f"{picked[1]}", "result")
    s.ask(f"Which id has {picked[0]} in {city}?", picked[3], "argument")
    s.ask(f"With which code does one get into {picked[0]} in {city}?", door, "aside")
    s.ask(f"Under which number is {picked[0]} in {city} booked?", number, "result")
    s.says(f"Booked under {number}." if s.random.random() < 0.5 else "Booked; the papers come by mail.")


def message_and_date(s: Session) -> None:
    who, day, room = (
        s.random.choice(PEOPLE),
        f"2024-{s.random.randint(5, 9):02d}-{s.random.randint(10, 28)}",
        f"room {s.random.randint(100, 499)}",
    )
    subject = f"{s.random.choice(VERBS)} of the {s.random.choice(NOUNS)} {s.random.randint(100, 999)}"
    s.user(
        f"Set up half an hour with {who} about the {subject} on {day} and write to them that I bring the {s.random.choice(NOUNS)} plans."
    )
    event, mail = f"evt_{s.code()}", f"msg-{s.code('0123456789', 9)}"
    s.together(
        [
            (
                "create_event",
                {
                    "title": subject,
                    "date": day,
                    "start": "14:30",
                    "minutes": 30,
                    "room": room,
                    "attendees": [f"{who.lower()}@example.com"],
                    "description": s.prose(4),
                },
                {
                    "status": "created",
                    "event": {
                        "id": event,
                        "link": f"https://cal.example.com/{event}",
                        "reminders": [10, 60],
                        "organizer": "me@example.com",
                    },
                },
            ),
            (
                "send_mail",
                {"to": f"{who.lower()}@example.com", "subject": subject, "body": f"Dear {who},\n{s.prose(9)}\nBest"},
                f"accepted for delivery: {mail}\nqueue: default\nretries: 0",
            ),
        ]
    )
    s.ask(f"In which room is the meeting on the {subject}?", room, "argument")
    s.ask(f"What is the id of the event on the {subject}?", event, "result")
    s.ask(f"Under which id was the mail on the {subject} accepted?", mail, "result")
    s.says(f"{who} is invited for 14:30." if s.random.random() < 0.7 else "Both done.")


def forecast(s: Session) -> None:
    city = s.random.choice(CITIES)
    days = [
        {
            "date": f"2024-07-{n + 1:02d}",
            "low": s.random.randint(8, 17),
            "high": s.random.randint(18, 36),
            "rain_mm": s.random.randint(100, 9000) / 100,
            "wind_kmh": s.random.randint(300, 6000) / 100,
            "text": s.random.choice(FILLER),
        }
        for n in range(14)
    ]
    wanted = s.random.choice(days)
    s.user(
        f"What will the weather be like in {city} on {wanted['date']}? We walk if there is less than {s.random.randint(2, 9)} mm of rain."
    )
    s.call(
        "forecast",
        {"city": city, "days": 14, "chunks": "metric"},
        {"place": {"name": city, "lat": 1.5, "lon": 2.5}, "daily": days},
    )
    s.ask(f"How strong is the wind in {city} on {wanted['date']}?", f"{wanted['wind_kmh']}", "aside")
    s.ask(f"How much rain does {city} get on {wanted['date']}?", f"{wanted['rain_mm']}", "result")
    s.says(
        f"Up to {wanted['high']} degrees and {wanted['rain_mm']} mm of rain."
        if s.random.random() < 0.5
        else "It looks fine for a walk."
    )


def small_talk(s: Session) -> None:
    person, code = s.random.choice(PEOPLE), s.random.randint(10_000, 99_999)
    s.user(
        f"By the way, {person} takes over the {s.random.choice(MODULES)} team on the {s.random.randint(2, 28)}th; the door code there is {code}."
    )
    s.says("Noted.")
    s.ask(f"What is the door code of the team that {person} takes over ({code % 10} at the end)?", code, "user")


SCENES: tuple[Callable[[Session], None], ...] = (
    failing_test, search_and_read, flight, find_definition, table_query, hotel, deploy, setting_in_file,
    message_and_date, listing, forecast, small_talk,
)  # fmt: skip


def drawn(seed: int, messages: int) -> Session:
    """Return a session of at least so many messages; about 250 have 60,000 tokens."""
    session = Session(Random(seed))
    while len(session.messages) < messages:
        scenes = list(SCENES)
        session.random.shuffle(scenes)
        for scene in scenes:
            scene(session)
    return session
