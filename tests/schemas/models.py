"""Pydantic models of every kind that people hand over as tool parameters or outputs."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AnyUrl, BaseModel, ConfigDict, Field

T = TypeVar("T")


class Empty(BaseModel):
    pass


class Flat(BaseModel):
    name: str
    count: int
    ratio: float
    on: bool


class Optionals(BaseModel):
    a: str
    b: str | None
    c: str | None = None
    d: int = 3
    e: list[int] = Field(default_factory=list)


class Address(BaseModel):
    """Where somebody lives."""

    street: str
    zip: str | None = None


class Person(BaseModel):
    name: str
    home: Address
    work: Address | None = None
    others: list[Address] = []


class Described(BaseModel):
    home: Address = Field(description="the main one")
    spare: Address | None = Field(default=None, description="the other one")


class Node(BaseModel):
    value: int
    next: Node | None = None


class Tree(BaseModel):
    label: str
    children: list[Tree] = []


class Ping(BaseModel):
    peer: Pong | None = None


class Pong(BaseModel):
    peer: Ping | None = None
    n: int = 0


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    good: bool | None = None


class Owner(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]] = []


class PlainUnion(BaseModel):
    value: int | str | Address
    maybe: int | Address | None = None


class Level(enum.IntEnum):
    low = 1
    high = 10


class Colour(enum.StrEnum):
    red = "red"
    blue = "blue"


class Enums(BaseModel):
    level: Level
    colour: Colour = Colour.red
    both: Literal["a", 1, None] = None
    other: Level | None = None


class Literals(BaseModel):
    one: Literal["x"]
    two: Literal["x", "y"] = "x"
    many: Literal[1, 2, 3] | None = None


class OpenMap(BaseModel):
    env: dict[str, str]


class AnyMap(BaseModel):
    data: dict[str, Any] = {}


class MapOfModels(BaseModel):
    people: dict[str, Person]


class ExtraAllowed(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class ExtraForbidden(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int
    b: str | None = None


class AnyField(BaseModel):
    anything: Any
    thing: object = None


class Pairs(BaseModel):
    point: tuple[float, float]
    points: list[tuple[int, int]] = []


class MixedTuple(BaseModel):
    entry: tuple[str, int]


class Tuples(BaseModel):
    many: tuple[int, ...] = ()
    unique: set[str] = set()


class Times(BaseModel):
    at: dt.datetime
    day: dt.date
    hour: dt.time
    long: dt.timedelta | None = None


class Special(BaseModel):
    id: uuid.UUID
    price: Decimal
    link: AnyUrl | None = None
    raw: bytes = b""


class Constrained(BaseModel):
    code: str = Field(min_length=2, max_length=4, pattern="^[a-z]+$")
    size: int = Field(ge=1, lt=100)
    step: float = Field(default=0.5, multiple_of=0.5)
    tags: list[str] = Field(min_length=1, max_length=3)


class Aliased(BaseModel):
    from_: str = Field(alias="from")
    class_: int | None = Field(default=None, alias="class")


class Box(BaseModel, Generic[T]):
    content: T
    spare: T | None = None


class Generics(BaseModel):
    ints: Box[int]
    people: Box[list[Person]]


class Keywords(BaseModel):
    properties: str
    required: list[str] = []
    title: str | None = None
    type: Literal["object"] = "object"
    default: int = 1
    enum: str = "e"
    items: list[int] | None = None
    additionalProperties: bool = False
    description: str = ""
    anyOf: int | None = None


class Examples(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"q": "a", "n": 1}]})
    q: str = Field(examples=["type", "properties"], description="What to look for.")
    n: int = Field(default=5, deprecated=True)


class Base(BaseModel):
    id: int


class Derived(Base):
    name: str
    parent: Base | None = None


class Matrix(BaseModel):
    rows: list[list[float]]


class NestedOptional(BaseModel):
    outer: list[Optionals]
    maybe: list[Optionals | None] | None = None


class Paths(BaseModel):
    model_config = ConfigDict(title="Read a file")
    path: str
    limit: Annotated[int, Field(gt=0, le=2000)] | None = None


class ModelDefault(BaseModel):
    home: Address = Address(street="x")


ALL: list[type[BaseModel]] = [
    *(Empty, Flat, Optionals, Address, Person, Described, Node, Tree, Ping, Pong, Owner, PlainUnion, Enums, Literals),
    *(OpenMap, AnyMap, MapOfModels, ExtraAllowed, ExtraForbidden, AnyField, Pairs, MixedTuple, Tuples, Times, Special),
    *(Constrained, Aliased, Generics, Keywords, Examples, Derived, Matrix, NestedOptional, Paths, ModelDefault),
]
