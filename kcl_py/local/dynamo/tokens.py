"""The words of an expression."""

import re
from dataclasses import dataclass

from kcl_py.local.dynamo.errors import Refusal, invalid

_TOKEN = re.compile(
    r"\s*(?:(?P<word>[A-Za-z][A-Za-z0-9_]*)|(?P<name>#[A-Za-z0-9_]+)|(?P<value>:[A-Za-z0-9_]+)|(?P<index>[0-9]+)"
    r"|(?P<sign><>|<=|>=|[=<>(),.\[\]+\-])|(?P<end>$)|(?P<strange>.))",
    re.DOTALL,
)
END = "<EOF>"


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a ``#name``, a ``:value``, an index, a sign, or the end."""

    kind: str
    text: str
    start: int
    end: int


class Tokens:
    """The tokens of one expression, read from the left.

    Args:
        expression: which parameter it is, for what is said about it.
        text: the expression.
    """

    def __init__(self, expression: str, text: str) -> None:
        self.expression, self._text = expression, text
        self._tokens: list[Token] = []
        self._next = 0
        position = 0
        while not self._tokens or self._tokens[-1].kind != "end":
            found = _TOKEN.match(text, position)
            assert found is not None  # the last alternatives take whatever is left
            kind = str(found.lastgroup)
            start, position = found.span(kind)
            self._tokens.append(Token(kind, found[kind] or END, start, position))
            if kind == "strange":
                self._next = len(self._tokens) - 1
                self._tokens.append(Token("end", END, len(text), len(text)))
                raise self.syntax_error()

    @property
    def position(self) -> int:
        """How many tokens have been taken."""
        return self._next

    def peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def take(self) -> Token:
        token = self.peek()
        self._next += token.kind != "end"
        return token

    def sees(self, *texts: str) -> bool:
        """Tell whether the next token is one of these; words in any case."""
        token = self.peek()
        return token.kind in ("word", "sign") and token.text.upper() in texts

    def accept(self, text: str) -> bool:
        """Take the next token if it is this one."""
        if self.sees(text):
            self.take()
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.syntax_error()

    def expect_kind(self, kind: str) -> Token:
        if self.peek().kind != kind:
            raise self.syntax_error()
        return self.take()

    def syntax_error(self) -> Refusal:
        """Return what is said about the next token, with its neighbours."""
        token, index = self.peek(), self._next
        first, last = self._tokens[max(index - 1, 0)], self._tokens[min(index + 1, len(self._tokens) - 1)]
        return self.error(f'Syntax error; token: "{token.text}", near: "{self._text[first.start : last.end]}"')

    def error(self, message: str) -> Refusal:
        return invalid(f"Invalid {self.expression}: {message}")
