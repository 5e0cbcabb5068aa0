"""From tokens to the tree. The grammar and its limits are those of the reference."""

from __future__ import annotations

import math

from mooring.cel.ast import Call, Expr, Ident, ListExpr, Literal, MapExpr, Select, StructExpr
from mooring.cel.errors import CelCompileError
from mooring.cel.lexer import Token, bytes_of, string_of, syntax_error, tokens_of
from mooring.cel.macros import MacroError, expand
from mooring.cel.values import MAX_INT, MAX_UINT, MIN_INT, UInt

#: How deep a rule of the grammar, and the tree, may be nested.
DEEPEST = 250
#: How many characters an expression may have.
LONGEST = 100_000

_RESERVED = frozenset(
    (
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let"),
        *("loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_RELATIONS = {op: f"_{op}_" for op in ("<", "<=", ">=", ">", "==", "!=")} | {"in": "@in"}
_SUMS = {"+": "_+_", "-": "_-_"}
_PRODUCTS = {"*": "_*_", "/": "_/_", "%": "_%_"}


def parse(text: str) -> Expr:
    """The tree of an expression, macros expanded. Raises CelCompileError."""
    if len(text) > LONGEST:
        raise CelCompileError(
            "compilation failed: ERROR: <input>:-1:0: expression code point size exceeds limit: "
            f"size: {len(text)}, limit {LONGEST}"
        )
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.index = 0
        #: How deep the rules `expr`, `relation` and `calc` are nested here.
        self.depths = {"expr": 0, "relation": 0, "calc": 0}

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def parse(self) -> Expr:
        expr = self.expr()
        if self.token.kind != "end":
            raise self.unexpected()
        return expr

    def unexpected(self) -> CelCompileError:
        token = self.token
        return self.error(token.position, f"Syntax error: unexpected input '{token.text}'")

    def error(self, position: int, message: str) -> CelCompileError:
        return syntax_error(self.text, position, message)

    def too_deep(self) -> CelCompileError:
        return CelCompileError(
            "compilation failed: ERROR: <input>:-1:0: expression recursion limit exceeded: "
            f"{DEEPEST}"
        )

    def advance(self) -> Token:
        token = self.tokens[self.index]
        self.index += 1
        return token

    def accept(self, kind: str) -> bool:
        if self.token.kind != kind:
            return False
        self.index += 1
        return True

    def expect(self, kind: str) -> Token:
        if self.token.kind != kind:
            raise self.unexpected()
        return self.advance()

    def enter(self, rule: str) -> None:
        self.depths[rule] += 1
        if self.depths[rule] > DEEPEST:
            raise self.too_deep()

    def counted(self, expr: Expr, *children: Expr) -> Expr:
        """Note how deep a node is whose rule counts against the limit."""
        return self.noted(expr, 1, children)

    def noted(self, expr: Expr, own: int, children: tuple[Expr, ...] | list[Expr]) -> Expr:
        expr.height = own + max((child.height for child in children), default=0)
        if expr.height > DEEPEST:
            raise self.too_deep()
        return expr

    def call(self, token: Token, function: str, *args: Expr) -> Expr:
        return Call(token.position, function, None, list(args))

    def expr(self) -> Expr:
        self.enter("expr")
        expr = self.disjunction()
        if self.token.kind == "?":
            token = self.advance()
            yes = self.disjunction()
            self.expect(":")
            no = self.expr()
            expr = self.counted(self.call(token, "_?_:_", expr, yes, no), expr, yes, no)
        self.depths["expr"] -= 1
        return expr

    def disjunction(self) -> Expr:
        terms = [self.conjunction()]
        first = self.token
        while self.accept("||"):
            terms.append(self.conjunction())
        if len(terms) == 1:
            return terms[0]
        return self.noted(self.call(first, "_||_", *terms), 0, terms)

    def conjunction(self) -> Expr:
        terms = [self.relation()]
        first = self.token
        while self.accept("&&"):
            terms.append(self.relation())
        if len(terms) == 1:
            return terms[0]
        return self.noted(self.call(first, "_&&_", *terms), 0, terms)

    def relation(self, recursive: bool = True) -> Expr:
        self.enter("relation")
        expr = self.calc(0)
        while recursive and self.token.kind in _RELATIONS:
            token = self.advance()
            right = self.relation(recursive=False)
            expr = self.counted(self.call(token, _RELATIONS[token.kind], expr, right), expr, right)
        self.depths["relation"] -= 1
        return expr

    def calc(self, level: int) -> Expr:
        """Sums (level 0 and up) and products (level 0, 1 and up); operands bind tighter."""
        self.enter("calc")
        expr = self.unary()
        while True:
            kind = self.token.kind
            if kind in _PRODUCTS and level <= 1:
                token, function, inner = self.advance(), _PRODUCTS[kind], 2
            elif kind in _SUMS and level <= 0:
                token, function, inner = self.advance(), _SUMS[kind], 1
            else:
                break
            right = self.calc(inner)
            expr = self.counted(self.call(token, function, expr, right), expr, right)
        self.depths["calc"] -= 1
        return expr

    def unary(self) -> Expr:
        token = self.token
        if token.kind == "!":
            count = self.repeated("!")
            operand = self.member(None)
            return self.negated(token, "!_", operand) if count % 2 else operand
        if token.kind != "-":
            return self.member(None)
        if self.tokens[self.index + 1].kind in ("int", "float"):
            return self.member(self.advance())
        count = self.repeated("-")
        operand = self.member(None)
        return self.negated(token, "-_", operand) if count % 2 else operand

    def repeated(self, kind: str) -> int:
        count = 0
        while self.accept(kind):
            count += 1
        return count

    def negated(self, token: Token, function: str, operand: Expr) -> Expr:
        return self.noted(self.call(token, function, operand), 0, (operand,))

    def member(self, minus: Token | None) -> Expr:
        expr = self.primary(minus)
        while True:
            token = self.token
            if token.kind == ".":
                self.advance()
                expr = self.dotted(token, expr)
            elif token.kind == "[":
                self.advance()
                function = "_[?_]" if self.accept("?") else "_[_]"
                index = self.expr()
                self.expect("]")
                expr = self.counted(self.call(token, function, expr, index), expr, index)
            else:
                return expr

    def dotted(self, dot: Token, operand: Expr) -> Expr:
        optional = self.accept("?")
        if self.token.kind == "quoted":
            raise self.error(self.token.position, "unsupported syntax: '`'")
        name = self.expect("ident")
        if not optional and self.token.kind == "(":
            opening = self.advance()
            args = self.arguments()
            return self.counted(self.expanded(opening, name.text, operand, args), operand, *args)
        if optional:
            field = Literal(name.position, name.text)
            return self.counted(self.call(dot, "_?._", operand, field), operand)
        return self.counted(Select(dot.position, operand, name.text), operand)

    def expanded(self, opening: Token, name: str, target: Expr | None, args: list[Expr]) -> Expr:
        try:
            found = expand(opening.position, name, target, args)
        except MacroError as error:
            raise self.error(error.position, str(error)) from None
        return Call(opening.position, name, target, args) if found is None else found

    def arguments(self) -> list[Expr]:
        args: list[Expr] = []
        if not self.accept(")"):
            args.append(self.expr())
            while self.accept(","):
                args.append(self.expr())
            self.expect(")")
        return args

    def primary(self, minus: Token | None) -> Expr:
        token = self.advance()
        match token.kind:
            case "(":
                expr = self.expr()
                self.expect(")")
                return expr
            case "[":
                return self.list(token)
            case "{":
                return self.map(token)
            case "." if self.token.kind == "ident":
                return self.named(self.advance(), ".")
            case "ident":
                return self.named(token, "")
            case "true" | "false":
                return Literal(token.position, token.kind == "true")
            case "null":
                return Literal(token.position, None)
            case "int" | "uint" | "float":
                return self.number(token, minus)
            case "string" | "bytes":
                read = string_of if token.kind == "string" else bytes_of
                try:
                    return Literal(token.position, read(token.text))
                except ValueError as error:
                    raise self.error(token.position, str(error)) from None
        self.index -= 1
        raise self.unexpected()

    def number(self, token: Token, minus: Token | None) -> Expr:
        position = (minus or token).position
        sign = -1 if minus else 1
        if token.kind == "float":
            value = sign * float(token.text)
            if math.isinf(value):
                raise self.error(position, "invalid double literal")
            return Literal(position, value)
        digits = token.text.rstrip("uU") if token.kind == "uint" else token.text
        if len(digits) > 100:
            raise self.error(position, f"invalid {token.kind} literal")
        whole = int(digits[2:], 16) if digits.startswith("0x") else int(digits)
        if token.kind == "uint":
            if whole > MAX_UINT:
                raise self.error(position, "invalid uint literal")
            return Literal(position, UInt(whole))
        if not MIN_INT <= sign * whole <= MAX_INT:
            raise self.error(position, "invalid int literal")
        return Literal(position, sign * whole)

    def named(self, token: Token, dot: str) -> Expr:
        start = self.index
        names = [token.text]
        while self.token.kind == "." and self.tokens[self.index + 1].kind == "ident":
            self.advance()
            names.append(self.advance().text)
        if self.token.kind == "{":
            return self.struct(self.advance(), dot + ".".join(names))
        self.index = start
        if token.text in _RESERVED:
            raise self.error(token.position, f"reserved identifier: {token.text}")
        if self.token.kind == "(":
            opening = self.advance()
            args = self.arguments()
            return self.noted(self.expanded(opening, dot + token.text, None, args), 0, args)
        return Ident(token.position, dot + token.text)

    def list(self, opening: Token) -> Expr:
        items: list[Expr] = []
        optional: list[bool] = []
        while self.token.kind not in ("]", ","):
            optional.append(self.accept("?"))
            items.append(self.expr())
            if not self.accept(","):
                break
            if self.token.kind == "]":
                self.advance()
                return self.noted(ListExpr(opening.position, items, optional), 0, items)
        if not items:
            self.accept(",")
        self.expect("]")
        return self.noted(ListExpr(opening.position, items, optional), 0, items)

    def map(self, opening: Token) -> Expr:
        entries: list[tuple[Expr, Expr, bool]] = []
        while self.token.kind not in ("}", ","):
            optional = self.accept("?")
            key = self.expr()
            self.expect(":")
            entries.append((key, self.expr(), optional))
            if not self.accept(","):
                break
        if not entries:
            self.accept(",")
        self.expect("}")
        parts = [part for key, value, _ in entries for part in (key, value)]
        return self.noted(MapExpr(opening.position, entries), 0, parts)

    def struct(self, opening: Token, name: str) -> Expr:
        fields: list[tuple[str, Expr, bool]] = []
        while self.token.kind not in ("}", ","):
            optional = self.accept("?")
            field = self.expect("ident").text
            self.expect(":")
            fields.append((field, self.expr(), optional))
            if not self.accept(","):
                break
        if not fields:
            self.accept(",")
        self.expect("}")
        return self.noted(
            StructExpr(opening.position, name, fields), 0, [value for _, value, _ in fields]
        )
