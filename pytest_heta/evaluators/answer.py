"""Evaluators that compare the answer with the expected ones."""

from __future__ import annotations

from typing import ClassVar

from pytest_heta.evaluators.wording import contains_phrase, folded, same_answer
from pytest_heta.models import BenchmarkCase, Direction, EvaluationScore, QueryResponse

__all__ = ["AnswerContains", "AnswerExactMatch"]


class _AnswerEvaluator:
    """What the answer evaluators share: true or false, for cases with answers."""

    direction: ClassVar[Direction] = "higher"
    worst: ClassVar[float] = 0.0
    bounded: ClassVar[bool] = True
    name: ClassVar[str]

    def __repr__(self) -> str:
        """Return the call that makes an equal evaluator."""
        return f"{type(self).__name__}()"

    def applies(self, case: BenchmarkCase) -> bool:
        """Whether the case expects an answer that is not blank."""
        return any(answer.strip() for answer in case.expected.answers)

    def score(self, *, case: BenchmarkCase, response: QueryResponse) -> EvaluationScore:
        """Return true or false, or "skipped" if no answer is expected."""
        raise NotImplementedError

    async def evaluate(self, *, case: BenchmarkCase, response: QueryResponse) -> EvaluationScore:
        """Return the score."""
        return self.score(case=case, response=response)

    def _skipped(self) -> EvaluationScore:
        return EvaluationScore(
            name=self.name, metadata={"skipped": True, "reason": "no expected answer"}
        )


class AnswerContains(_AnswerEvaluator):
    """Whether the answer contains an expected answer as whole words.

    Texts are compared in Unicode NFKC, case-folded, with white space folded.
    A mode that only retrieves gives no answer (None): then the texts of the
    results are searched instead, each by itself, and the score's metadata say
    ``{"from": "results"}``. An empty answer is an answer, and a wrong one.
    """

    name: ClassVar[str] = "answer_contains"

    def score(self, *, case: BenchmarkCase, response: QueryResponse) -> EvaluationScore:
        """Return true or false, or "skipped" if no answer is expected."""
        if not self.applies(case):
            return self._skipped()
        if response.answer is None:
            texts, metadata = [result.text for result in response.results], {"from": "results"}
        else:
            texts, metadata = [response.answer], {}
        expected = [folded(answer) for answer in case.expected.answers]
        value = any(
            contains_phrase(text, answer) for text in map(folded, texts) for answer in expected
        )
        return EvaluationScore(name=self.name, value=value, passed=value, metadata=metadata)


class AnswerExactMatch(_AnswerEvaluator):
    """Whether the answer is one of the expected answers.

    Texts are compared as SQuAD's exact match does: Unicode NFKC, case-folded,
    without punctuation, without the articles a, an and the, white space
    folded. No answer is a wrong answer.
    """

    name: ClassVar[str] = "answer_exact_match"

    def score(self, *, case: BenchmarkCase, response: QueryResponse) -> EvaluationScore:
        """Return true or false, or "skipped" if no answer is expected."""
        if not self.applies(case):
            return self._skipped()
        given = response.answer
        value = given is not None and any(
            same_answer(given, answer) for answer in case.expected.answers
        )
        return EvaluationScore(name=self.name, value=value, passed=value)
