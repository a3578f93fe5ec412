"""Exceptions that come back from the log: class, arguments, text and attributes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrewind.codec import decode, encode
from agentrewind.errors import DamagedError, DivergenceError
from agentrewind.identity import canonical_bytes
from agentrewind.raised import rebuild_exception, record_exception
from agentrewind.records import AttemptFailed, ErrorRecord, Json, RecordUid
from tests.core.conversations import texts, values


class QuotaError(Exception):
    """Built from keywords only, with a text of its own."""

    def __init__(self, *, used: int, limit: int) -> None:
        self.used = used
        self.limit = limit
        super().__init__(f"{used} of {limit} used")


class FieldsError(Exception):
    """Its text needs attributes that are no scalars."""

    def __init__(self, fields: list[str], where: dict[str, int]) -> None:
        super().__init__(fields, where)
        self.fields = fields
        self.where = where

    def __str__(self) -> str:
        return f"{', '.join(self.fields)} at {self.where['line']}"


class OpaqueError(Exception):
    """Holds what no record can hold, and cannot do without it."""

    def __init__(self, handle: object, path: str) -> None:
        self.handle = handle
        self.path = path

    def __str__(self) -> str:
        return f"{self.path} of {self.handle.__class__.__name__.upper()}"


class NamedError(Exception):
    """Puts a prefix before its text whenever it is built, as clients of providers do."""

    def __init__(self, message: str, provider: str) -> None:
        self.message = f"named: {message}"
        self.provider = provider
        self.response = object()
        super().__init__(self.message)


class SilentError(Exception):
    """Has no text that could be asked for."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class FixedError(Exception):
    """One of its attributes cannot be set."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.__dict__["code"] = code

    @property
    def code(self) -> int:
        return 7


def there_and_back(error: BaseException, *, secrets: tuple[str, ...] = ()) -> BaseException:
    """As the log keeps it: through the codec."""
    record = record_exception(error, secrets=secrets)
    failed = AttemptFailed(record_uid=RecordUid("rec_000001"), attempt=1, error=record, at="")
    blobs: dict[str, bytes] = {}

    def put(data: bytes) -> str:
        blobs["sha256:0"] = data
        return "sha256:0"

    read = decode(encode(failed, put_blob=put), get_blob=blobs.__getitem__)
    assert isinstance(read, AttemptFailed)
    return rebuild_exception(read.error)


def raised_by(action: object) -> BaseException:
    assert callable(action)
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - any kind is meant
        action()
    return caught.value


def test_an_os_error_keeps_number_text_and_file_name(tmp_path: Path) -> None:
    error = raised_by((tmp_path / "missing").read_bytes)
    again = there_and_back(error)
    assert type(again) is FileNotFoundError
    assert again.errno == 2
    assert again.filename == str(tmp_path / "missing")
    assert str(again) == str(error)


def test_an_os_error_between_two_files_keeps_both(tmp_path: Path) -> None:
    error = raised_by(lambda: (tmp_path / "a").rename(tmp_path / "b"))
    again = there_and_back(error)
    assert isinstance(again, OSError)
    assert (again.filename, again.filename2) == (str(tmp_path / "a"), str(tmp_path / "b"))
    assert str(again) == str(error)


@pytest.mark.parametrize(
    "error",
    [
        KeyError("name"),
        ValueError("bad", 3, None),
        ValueError(),
        AssertionError("x"),
        StopIteration(4),
        TimeoutError("too late"),
        KeyboardInterrupt(),
        SystemExit(3),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        json.JSONDecodeError("Expecting value", "{", 1),
        QuotaError(used=3, limit=2),
        FieldsError(["a", "b"], {"line": 4}),
        DivergenceError(record_uid="rec_000001", difference="model"),
        subprocess.CalledProcessError(3, ["make", "all"], output=b"\xff", stderr="bad"),
        subprocess.TimeoutExpired(["make"], 1.5),
    ],
    ids=lambda error: type(error).__name__,
)
def test_class_text_and_plain_attributes_come_back(error: BaseException) -> None:
    again = there_and_back(error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    for name, value in vars(error).items():
        assert getattr(again, name) == value


def test_import_errors_keep_the_name_of_the_module() -> None:
    again = there_and_back(raised_by(lambda: __import__("no_such_module_at_all")))
    assert isinstance(again, ModuleNotFoundError)
    assert str(again) == "No module named 'no_such_module_at_all'"
    assert again.name == "no_such_module_at_all"


def test_a_constructor_that_adds_to_the_text_does_not_add_twice() -> None:
    error = NamedError("overloaded", "openai")
    again = there_and_back(error)
    assert type(again) is NamedError
    assert (str(again), again.message, again.provider) == (str(error), "named: overloaded", "openai")
    assert again.args == error.args
    # what only the constructor makes is there as well
    assert again.response is not None


def test_what_is_no_data_is_left_out_and_the_class_stays() -> None:
    again = there_and_back(OpaqueError(object(), "/dev/x"))
    assert type(again) is OpaqueError
    assert again.path == "/dev/x"


def test_an_exception_without_a_text_is_recorded() -> None:
    record = record_exception(SilentError("x"))
    assert record.args == ("x",)
    assert type(rebuild_exception(record)) is SilentError


def test_an_attribute_that_cannot_be_set_is_passed_over() -> None:
    assert isinstance(there_and_back(FixedError(3)), FixedError)


def test_secrets_leave_texts_arguments_and_attributes_at_any_depth() -> None:
    secret = "s3cr3t-value"
    error = FieldsError([f"Bearer {secret}"], {"line": 1})
    error.args = ({"error": {"message": f"bad key {secret}", "raw": secret.encode()}}, [secret])
    error.detail = {"request": {"headers": [["authorization", secret]]}}  # type: ignore[attr-defined]
    record = record_exception(error, secrets=[secret])
    kept: list[Json] = [record.message, [*record.args], record.attributes]
    assert secret not in repr(kept)
    assert "[redacted]" in repr(kept)


def test_a_class_that_cannot_be_imported_is_damage() -> None:
    class LocalError(Exception):
        pass

    for error in (record_exception(LocalError("x")), ErrorRecord(type="no.such:Error", message="x")):
        with pytest.raises(DamagedError, match="cannot be imported"):
            rebuild_exception(error)


@pytest.mark.parametrize("name", ["builtins:dict", "os:getcwd", "builtins:", "", ":ValueError", "os"])
def test_what_is_no_exception_is_damage(name: str) -> None:
    with pytest.raises(DamagedError):
        rebuild_exception(ErrorRecord(type=name, message="x"))


@given(st.sampled_from([ValueError, KeyError, OSError, RuntimeError]), st.lists(texts | values, max_size=3))
def test_built_in_exceptions_come_back_as_they_were(kind: type[Exception], arguments: list[Json]) -> None:
    error = kind(*arguments)
    again = there_and_back(error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert canonical_bytes([*again.args]) == canonical_bytes([*error.args])


def test_what_is_done_to_a_rebuilt_exception_stays_out_of_the_record() -> None:
    record = record_exception(FieldsError(["a"], {"line": 1}))
    first = rebuild_exception(record)
    assert isinstance(first, FieldsError)
    first.fields.append("b")
    second = rebuild_exception(record)
    assert isinstance(second, FieldsError)
    assert second.fields == ["a"]
