"""Guards against work that grows faster than the text it is done on."""

from collections.abc import Callable
from time import process_time


def assert_linear(work: Callable[[str], object], unit: str, length: int = 100_000, times: int = 8) -> None:
    """Assert that a longer text of the same units takes no more than three times its share of the time."""

    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        begin = process_time()
        work(text)
        return process_time() - begin

    seconds(1_000)  # what is compiled and loaded once
    most = 3 * times * max(seconds(length), 0.01)
    assert any(seconds(times * length) < most for _ in range(3)), "quadratic work takes 64 times as long"
