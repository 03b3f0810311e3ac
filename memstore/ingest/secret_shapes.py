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
    r"|\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"  # JWT
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
DOCUMENT = re.compile(
    r"\b(?:passport|reisepass|passeport|pasaporte|identity card|id card|personalausweis\w*|ausweis|carte d'identité"
    r"|dni|nie"
    r"|driving licen[cs]e|driver'?s licen[cs]e|führerschein|social security|ssn|tax (?:id|number)|steuer-?id\w*"
    r"|steuernummer|sozialversicherungs\w+|护照|身份证)(?:[- ]?(?:number|no\.?|nummer|nr\.?|numéro|número|号码?))?"
    r"[^\w\n]{0,3}(?:is|ist|lautet|est|es|是)?[^\w\n]{0,3}(?P<number>(?-i:(?=(?:[A-Z -]*\d){5})"
    r"[A-Z\d](?:[ -]?[A-Z\d]){5,17}))(?!\w)"
    r"|(?:护照|身份证)(?:号码?)?[是为:：\s]{0,3}(?P<zh>[A-Z\d]{7,18})",
    re.IGNORECASE,
)
IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z\d]{4}){2,7}(?: ?[A-Z\d]{1,4})?\b", re.IGNORECASE)
CARD = re.compile(r"(?<![\d-])(?<!\d\.)\d(?:[ -]?\d){12,18}(?![\d-])")
SOCIAL_SECURITY = re.compile(r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])")

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
PASSWORD = re.compile(
    rf"(?:{_CALLED})[\"'`]?(?: (?:for|to|of|on|für|zum|de|du|der|von)(?: [^\s:=]{{1,40}}){{1,4}}?)?\s{{0,3}}"
    r"(?:(?<=\s)(?:is|ist|es|est|lautet|was|war)(?=\s)|[:=：])\s{0,3}[\"'“„«`]?"
    r"(?P<value>[^\s\"'“”„«»`,;]{3,128}[^\s\"'“”„«»`.,;:!?)])",
    re.IGNORECASE,
)
NAMED = re.compile(rf"(?:[a-z]+[_-]?)?(?:{_CALLED}|secret)", re.IGNORECASE)  # names of values in JSON
