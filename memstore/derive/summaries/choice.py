"""The choice of sentences for a summary: those that together say most within its tokens. Pure arithmetic."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf, log1p

from memstore.derive.summaries.cues import NAME, Clause, score_sentence
from memstore.language import NUMBER
from memstore.store.tokenize import terms

DAY_LINE_TOKENS = 6
# Of names and numbers beside stems: of what gold summaries say, 0 keeps 42 % at 80 tokens, 1 keeps 91.
NAMES = 1.0
MAX_SENTENCES = 400
Weights = dict[str, float]


def top_sentences(sentences: Sequence[str]) -> list[int]:
    if len(sentences) <= MAX_SENTENCES:
        return list(range(len(sentences)))
    scores = [score_sentence(sentence) for sentence in sentences]
    return sorted(sorted(range(len(sentences)), key=lambda place: (-scores[place], place))[:MAX_SENTENCES])


def find_mentions(sentence: str) -> set[str]:
    """Return names and numbers, lower-cased; the word that begins the sentence is no name."""
    names = {name.lower().removesuffix("'s").removesuffix("’s") for name in NAME.findall(sentence)}
    return names | set(NUMBER.findall(sentence))


def choose_sentences(sentences: Sequence[str], costs: Sequence[int], limit: int, scores: Sequence[float]) -> list[int]:
    """Return the indices, ascending, of the sentences that together say most within `limit` tokens.

    Their order matters only between equals. A sentence that adds nothing is left out even if it fits.
    """
    words = weigh_words(
        [terms(sentence) for sentence in sentences], [find_mentions(sentence) for sentence in sentences], NAMES
    )
    return choose(Material(words, costs, scores), limit)


@dataclass(frozen=True, slots=True)
class Material:
    """What is chosen from: the weights of each sentence's words, its tokens and its score.

    The extra worth of `clauses` is at most `cue_worth`, as far as their `own_words` and their `numbers` are new.
    `heads` are the tokens of a line that names who says it, `days` when that was.
    """

    words: Sequence[Weights]
    costs: Sequence[int]
    scores: Sequence[float]
    clauses: Sequence[Clause] = ()
    heads: Sequence[int] = ()
    days: Sequence[str] = ()
    own_words: Sequence[Weights] = ()
    numbers: Sequence[Weights] = ()
    cue_worth: float = 0.0


@dataclass(slots=True)
class _Choice:
    """The places that are `chosen`, in order, and the words that are `said` by them."""

    material: Material
    chosen: list[int] = field(default_factory=list)
    said: set[str] = field(default_factory=set)

    def group(self, place: int) -> list[int]:
        clauses, places = self.material.clauses, [place]
        while clauses and (need := clauses[places[-1]].needs) is not None and need not in self.chosen:
            places.append(need)
        return places

    def gain(self, places: Sequence[int]) -> float:
        """Return what these places say that no chosen one has said."""
        material = self.material
        total = 0.0
        for place in places:
            news = _news(material.words[place], self.said)
            total += news * max(0.02, 0.5 + material.scores[place])
            if material.cue_worth:
                total += self._extra(place)
        return total

    def _extra(self, place: int) -> float:
        material = self.material
        clause = material.clauses[place]
        # "yes" is about the question
        about = place if material.own_words[place] or clause.needs is None else clause.needs
        decision, number = clause.values
        own_words, numbers = material.own_words[about], material.numbers[about]
        news = _news(own_words, self.said)
        # Most have no numbers, and `own_words` in their place.
        number_news = news if numbers is own_words else _news(numbers, self.said)
        return material.cue_worth * (decision * news + number * number_news)

    def cost(self, places: Sequence[int]) -> int:
        material, chosen = self.material, self.chosen
        total = sum([material.costs[place] for place in places])
        for place in places if material.heads else ():
            at = bisect(chosen, place)
            before, after = chosen[at - 1] if at else None, chosen[at] if at < len(chosen) else None
            total += self._head(place, before)
            total += self._head(after, place) - self._head(after, before) if after is not None else 0
            if len(places) > 1:
                chosen = sorted([*chosen, place])
        return total

    def _head(self, place: int, before: int | None) -> int:
        """Return the tokens of the layout in front of a clause that follows another one."""
        material = self.material
        if before is None:
            return material.heads[place]
        clause, last = material.clauses[place], material.clauses[before]
        if material.days[place] != material.days[before]:
            return material.heads[place] + DAY_LINE_TOKENS
        if clause.speaker != last.speaker:
            return material.heads[place]
        return int(clause.line != last.line)

    def take(self, place: int) -> list[int]:
        material, places = self.material, self.group(place)
        self.chosen = sorted([*self.chosen, *places])
        self.said.update(*(material.words[each] for each in places))
        return places


def choose(material: Material, limit: int) -> list[int]:
    """Choose the best sentence again and again, by what it says for a token that no chosen one has said.

    A clause comes with the one that it needs.
    """
    clauses, choice = material.clauses, _Choice(material)
    heap = [(-inf, place) for place in range(len(material.words)) if not (clauses and clauses[place].is_empty)]
    while (best := _find_best(heap, choice, limit)) is not None:
        _, place, tokens = best
        limit -= tokens
        # Those that need a taken clause, and those that need these, are worth more alone.
        lighter = set(choice.take(place))
        for other, clause in enumerate(clauses):
            if clause.needs in lighter and other not in choice.chosen:
                lighter.add(other)
                heappush(heap, (-inf, other))
    return choice.chosen


def _find_best(heap: list[tuple[float, int]], choice: _Choice, limit: int) -> tuple[float, int, int] | None:
    """Return the place that says most for a token, with its worth and its tokens.

    The worth in the heap is never too small.
    """
    best: tuple[float, int, int] | None = None
    tried: list[tuple[float, int]] = []
    while heap and (best is None or heap[0][0] < best[0]):
        _, place = heappop(heap)
        if place in choice.chosen:
            continue
        places = choice.group(place)
        least = sum([choice.material.costs[each] for each in places])
        if least > limit or not (gained := choice.gain(places)):
            continue
        tried.append((-_worth(gained, least), place))
        # Whatever stands around it.
        if best is not None and tried[-1] >= best[:2]:
            continue
        tokens = choice.cost(places)
        if tokens <= limit and (best is None or (-_worth(gained, tokens), place) < best[:2]):
            best = -_worth(gained, tokens), place, tokens
    for candidate in tried:
        heappush(heap, candidate)
    return best


def _worth(gained: float, tokens: int) -> float:
    # Rounded: the last bits of a logarithm differ between machines, and must not decide.
    return round(gained / max(1, tokens), 9)


def _news(words: Weights, old_words: Collection[str]) -> float:
    return sum([weight for word, weight in words.items() if word not in old_words])


def normalize(words: Weights, is_part: Callable[[str], bool]) -> Weights:
    part = {word: weight for word, weight in words.items() if is_part(word)}
    total = sum(part.values())
    return {word: weight / total for word, weight in part.items()}


def weigh_words(stems: Sequence[Collection[str]], names: Sequence[Collection[str]], of_names: float) -> list[Weights]:
    """Return the stems and names of each sentence with their share of all stems, and of all names."""
    named = _share([[f"name {name}" for name in sorted(of_sentence)] for of_sentence in names])
    return [
        weights | {name: of_names * share for name, share in more.items()}
        for weights, more in zip(_share(stems), named, strict=True)
    ]


def _share(sentences: Sequence[Collection[str]]) -> list[Weights]:
    frequency = Counter(word for words in sentences for word in words)
    total = max(1.0, sum(map(log1p, frequency.values())))
    return [{word: log1p(frequency[word]) / total for word in words} for words in sentences]
