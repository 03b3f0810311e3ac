"""What must not stand in a fact: keys, passwords, and the numbers of cards, accounts and documents."""

from __future__ import annotations

import pytest

from memstore.ingest.facts.audit import secret_in


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("My passport number is C01X00T47.", "the number of an identity document"),
        ("Mein Reisepass: C01X00T47", "the number of an identity document"),
        ("Meine Personalausweisnummer ist L01X00T471.", "the number of an identity document"),
        ("My SSN is 078-05-1120.", "the number of an identity document"),
        ("Mi DNI es 12345678Z.", "the number of an identity document"),
        ("我的护照号是E12345678。", "the number of an identity document"),
        ("My IBAN is DE89 3704 0044 0532 0130 00.", "the number of a bank account"),
        ("IBAN GB82WEST12345698765432", "the number of a bank account"),
        ("Pay with 4111 1111 1111 1111.", "the number of a payment card"),
        ("Pay by 4111.1111.1111.1111 or visa-4111111111111111.", "the number of a payment card"),
        ("Mine ends in 12/27: 6759 6498 2643 8453.", "the number of a payment card"),
        ("The account is DE89.3704.0044.0532.0130.00", "the number of a bank account"),
        ("Malta's is MT84 MALT 0110 0001 2345 MTLC AST0 01S", "the number of a bank account"),
    ],
)
def test_a_secret_is_found(text, kind):
    assert secret_in(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        "My passport expires in 2027.", "My passport was issued on 12 May 2023.",
        "My passport is valid until 2027-03-01.",
        "I got my driving licence in 2019.", "The account DE89 3704 0044 0532 0130 01 is mistyped.",
        "Released in 2024.01.02, version 4.11.111.1111, at 192.168.100.200.",
        "Alice moved on 12 May 2023.", "The order number is 4111 1111 1111 1112.",
    ],
)  # fmt: skip
def test_dates_and_mistyped_numbers_are_none(text):
    assert secret_in(text) is None
