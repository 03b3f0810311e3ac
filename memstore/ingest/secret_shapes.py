"""What secrets look like: keys of services, numbers of documents, accounts and cards. Pure."""

from __future__ import annotations

import re

KEYS = re.compile(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"  # AWS
    r"|\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_\w{22,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}"  # Slack
    r"|\b[sr]k[-_](?:live[-_]|test[-_]|proj-|ant-)?[A-Za-z0-9_-]{20,}"  # Stripe, OpenAI, Anthropic
    r"|\bAIza[0-9A-Za-z_-]{35}"  # Google
    r"|\bnpm_[A-Za-z0-9]{36}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
# Of any length, so that it is looked for in a whole text; a run of its letters is gone through once.
JWT = re.compile(r"(?<![\w-])eyJ[\w-]{8,}+\.eyJ[\w-]{8,}+\.[\w-]{8,}+")
DOCUMENT = re.compile(
    r"\b(?:passport|reisepass|passeport|pasaporte|identity card|id card|personalausweis\w*|ausweis|carte d'identité"
    r"|dni|nie"
    r"|driving licen[cs]e|driver'?s licen[cs]e|führerschein|social security|ssn|tax (?:id|number)|steuer-?id\w*"
    r"|steuernummer|sozialversicherungs\w+|护照|身份证)(?:[- ]?(?:number|no\.?|nummer|nr\.?|numéro|número|号码?))?"
    r"[^\w\n]{0,3}(?:is|ist|lautet|est|es|是)?[^\w\n]{0,3}(?P<number>(?-i:(?=(?:[A-Z -]{0,12}+\d){5})"
    r"[A-Z\d](?:[^\S\n]?-?[A-Z\d]){5,17}))(?!\w)"
    r"|(?:护照|身份证)(?:号码?)?[是为:：\s]{0,3}(?P<zh>[A-Z\d]{7,18})",
    re.IGNORECASE,
)

# Between the groups of a number: a blank of any width, one that is not seen, a hyphen of any kind.
_UNSEEN, _HYPHENS = "\u00ad\u200b-\u200d\u2060\ufeff", "‐-―−-"
_BETWEEN = rf"(?:[^\S\n\v\f\r\x1c-\x1e\x85\u2028\u2029]|[{_UNSEEN}{_HYPHENS}])"
_WRAPPED = rf"[\s{_UNSEEN}{_HYPHENS}]"  # the end of a line too
# Row after row of digits, atomic: whether some of it is a card is looked at group by group. Numbers that a hyphen parts
# from a word are ids, but for a card's. A fraction has few digits before its dot.
_OF_A_CARD = "|".join([*(rf"(?<=(?<![^\W_]){word}-)" for word in ("visa", "card", "amex", "maestro")), "(?<=karte-)"])
_BEGIN = rf"(?=\d)(?:(?<![\d-])|{_OF_A_CARD})(?<!(?<!\d{{6}})\d\.)"
DIGITS = re.compile(rf"{_BEGIN}\d++(?:{_BETWEEN}\d++)*+", re.IGNORECASE)
WRAPPED_DIGITS = re.compile(rf"{_BEGIN}\d++(?:{_WRAPPED}{{1,4}}+\d++)++", re.IGNORECASE)
WORD_AFTER = re.compile(r"-[^\W_]")
# Dots, slashes and underscores part versions, addresses, dates and paths too: between groups as cards have them alone.
PARTED_DIGITS = re.compile(
    r"(?<!\d)(?<!\d[./_-])"
    r"(?:\d{4}(?P<by>[./_])\d{4}(?P=by)\d{4}(?P=by)\d{4}(?:(?P=by)\d{3})?|3\d{3}(?P<sign>[./_])\d{6}(?P=sign)\d{4,5})"
    r"(?![./_-]?\d)"
)
IBAN = re.compile(
    rf"(?<![^\W_])(?=(?P<number>[A-Z]{{2}}\d{{2}}(?:(?:{_WRAPPED}{{0,3}}|[./_])[A-Z\d]){{11,30}}))", re.IGNORECASE
)
DIGEST = re.compile(r"(?<![\da-f-])(?=[\d-]*+[a-f])[\da-f-]{32,}", re.IGNORECASE)
GROUP = re.compile(r"[^\W_]+")
SOCIAL_SECURITY = re.compile(rf"(?<![\d-])\d{{3}}[{_HYPHENS}]\d{{2}}[{_HYPHENS}]\d{{4}}(?![\d-])")

# The password in a URL: up to the last @ before a path, whatever signs it has.
URL_PASSWORD = re.compile(r"://[^\s/?#@:\"'<>]{0,128}:(?P<value>[^\s/\"'<>]{1,256})@(?=[\w\[])")

# A block of PEM or PGP, its lines parted by line ends or by "\n" spelled out. Atomic: no match is quick.
PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    r"(?>(?:\s|\\[nr])*+(?:[A-Z][A-Za-z-]{2,20}: [^\n\\]*+|[A-Za-z0-9+/=]{16,}+))*+"
    r"(?:(?:\s|\\[nr])*+(?:[A-Za-z0-9+/=]{1,15}(?:\s|\\[nr])++)*+"
    r"-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)?"
)

# What is told to be a password or a key. `value` is whatever stands there: whether it looks like one is judged apart.
_CALLED = (
    r"pass(?:word|wort|phrase|code|wd)|kennwort|contraseña|mot de passe|(?<![a-z])pwd|(?-i:(?<![A-Za-z])PIN)"
    r"(?: code| number)?|(?:api|secret|access|private)[ _-]?(?:access[ _-]?)?(?:key|token)"
    r"|(?:auth|bearer|refresh)[ _-]?token|client[ _-]?secret"
)
_QUOTES = "\"'“„«`"
PASSWORD = re.compile(
    rf"(?:{_CALLED})(?:s?[\"'`])?(?: (?:for|to|of|on|für|zum|de|du|der|von)(?: [^\s:=]{{1,40}}){{1,4}}?)?\s{{0,3}}"
    rf"(?:(?<=\s)(?:is|ist|es|est|lautet|was|war)(?=\s)|[:=：])\s{{0,3}}[{_QUOTES}]?"
    r"(?P<value>[^\s\"'“”„«»`,;]{3,128}[^\s\"'“”„«»`.,;:!?)])",
    re.IGNORECASE,
)
# What is called a token and nothing else: a model's, a page's and a word's are called so too.
TOKEN = re.compile(
    rf"(?<![\w-])(?<!page )(?<!next )token[\"'`]?\s{{0,3}}[:=：]\s{{0,3}}[{_QUOTES}]?"
    r"(?P<value>[A-Za-z0-9._~+/-]{16,}+={0,2})",
    re.IGNORECASE,
)
# Several of them in JSON, over lines. What the list is called is read behind it: names are sought at every letter.
LISTED = re.compile(r"s[\"'`]\s{0,3}[:=]\s{0,3}\[(?P<values>[^\[\]]++)", re.IGNORECASE)
LIST_NAME = re.compile(rf"(?:{_CALLED}|secret)\Z", re.IGNORECASE)
LONGEST_LIST_NAME = 40  # characters
QUOTED = re.compile(r"(?<![^\s,])[\"'](?P<value>[^\s\"']{4,128})[\"']")
# Names of values in JSON, whatever they are of: `db_password`, `dbPassword`, `spring_datasource_password`, `api_keys`.
NAMED = re.compile(rf"(?:[a-z\d]++[_-])*[a-z]*?(?:{_CALLED}|secret)s?", re.IGNORECASE)
