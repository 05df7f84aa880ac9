"""A small labelled set: seven situations in six languages, written for this project. A sanity check, no benchmark.

Each case is a request without `pattern`, the patterns that may be added, and what is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Case:
    """One conversation. `patterns` maps fields to the keys that narrow them."""

    situation: str
    language: str
    messages: list[dict[str, Any]]
    schema: dict[str, dict[str, Any]]
    expected: dict[str, Any]
    patterns: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    def request(self, *, patterns: bool) -> dict[str, Any]:
        """The schema, with or without the patterns."""
        added = self.patterns if patterns else {}
        return {name: {**spec, **added.get(name, {})} for name, spec in self.schema.items()}


_NUMBER = {"policy_number": {"type": "string", "extract": True, "nullable": True}}
_SIXTEEN = {"policy_number": {"pattern": "[0-9]{16}"}}
_WORDS: dict[str, dict[str, str]] = {
    "en": {
        "claim": "Hi, I'd like to file an {kind} claim", "inpatient": "inpatient", "outpatient": "outpatient",
        "ask": "Sure, could you give me the policy number and the name?", "give": "{number} under the name {name}",
        "fix": "Sorry, the right number is {number}", "mail": "You can write to me at {mail}, please.",
        "people": "We are {n} people and we arrive on {day}.", "none": "I do not have the number with me now.",
        "name": "Emma Carter",
    },
    "id": {
        "claim": "Halo, saya mau mengajukan klaim {kind}", "inpatient": "rawat inap (inpatient)",
        "outpatient": "rawat jalan (outpatient)", "ask": "Baik, boleh minta nomor polis dan namanya?",
        "give": "{number} atas nama {name}", "fix": "Maaf, nomor yang benar {number}",
        "mail": "Silakan tulis ke {mail} ya.", "people": "Kami {n} orang dan tiba pada {day}.",
        "none": "Saya tidak membawa nomornya sekarang.", "name": "Andi Pratama",
    },
    "de": {
        "claim": "Hallo, ich möchte einen Antrag stellen: {kind}", "inpatient": "stationär (inpatient)",
        "outpatient": "ambulant (outpatient)", "ask": "Gern, wie lauten Policennummer und Name?",
        "give": "{number}, auf den Namen {name}", "fix": "Entschuldigung, die richtige Nummer ist {number}",
        "mail": "Schreiben Sie mir bitte an {mail}.", "people": "Wir sind {n} Personen und kommen am {day} an.",
        "none": "Die Nummer habe ich gerade nicht zur Hand.", "name": "Jonas Weber",
    },
    "es": {
        "claim": "Hola, quiero presentar un reclamo {kind}", "inpatient": "hospitalario (inpatient)",
        "outpatient": "ambulatorio (outpatient)", "ask": "Claro, ¿me da el número de póliza y el nombre?",
        "give": "{number} a nombre de {name}", "fix": "Perdón, el número correcto es {number}",
        "mail": "Puede escribirme a {mail}, gracias.", "people": "Somos {n} personas y llegamos el {day}.",
        "none": "Ahora no tengo el número conmigo.", "name": "Lucía Romero",
    },
    "fr": {
        "claim": "Bonjour, je voudrais déclarer un sinistre : {kind}", "inpatient": "hospitalisation (inpatient)",
        "outpatient": "soins externes (outpatient)", "ask": "Bien sûr, quel est le numéro de police et le nom ?",
        "give": "{number} au nom de {name}", "fix": "Pardon, le bon numéro est {number}",
        "mail": "Écrivez-moi à {mail}, merci.", "people": "Nous sommes {n} personnes et arrivons le {day}.",
        "none": "Je n'ai pas le numéro sur moi.", "name": "Chloé Martin",
    },
    "zh": {
        "claim": "你好，我想申请理赔：{kind}", "inpatient": "住院 (inpatient)", "outpatient": "门诊 (outpatient)",
        "ask": "好的，请提供保单号和姓名。", "give": "{number}，姓名 {name}", "fix": "抱歉，正确的号码是 {number}",
        "mail": "请写信到 {mail} 谢谢。", "people": "我们一共 {n} 人，{day} 到达。", "none": "我现在没有带号码。", "name": "王小明",
    },
}  # fmt: skip

LANGUAGES = tuple(_WORDS)


def cases() -> Iterator[Case]:
    """All of them."""
    for at, (language, words) in enumerate(_WORDS.items()):
        number, second = f"32014567890123{at}5", f"88700011223344{at}7"
        mail, n, day = f"user{at}@mail.example", at + 2, f"2026-0{at + 1}-14"
        claim = [
            {"role": "user", "content": words["claim"].format(kind=words["inpatient"])},
            {"role": "assistant", "content": words["ask"]},
        ]
        given = {"role": "user", "content": words["give"].format(number=number, name=words["name"])}
        kinds = {"claim_type": {"type": "enum", "options": ["inpatient", "outpatient"]}}
        person = {"name": {"type": "string", "extract": True}}
        yield Case("given", language, [*claim, given], _NUMBER, {"policy_number": number}, _SIXTEEN)
        yield Case("name", language, [*claim, given], person, {"name": words["name"]},
                   {"name": {"pattern": r"(?<!\p{L})(?!Namen )\p{Lu}\p{Ll}+ \p{Lu}\p{Ll}+|(?<=姓名 )\p{Han}{2,4}"}})  # fmt: skip
        fixed = [
            *claim, given, {"role": "assistant", "content": "OK."},
            {"role": "user", "content": words["fix"].format(number=second)},
        ]  # fmt: skip
        yield Case("corrected", language, fixed, _NUMBER, {"policy_number": second}, _SIXTEEN)
        wrote = [{"role": "user", "content": words["mail"].format(mail=mail)}]
        address = {"email": {"type": "string", "extract": True}}
        yield Case("mail", language, wrote, address, {"email": mail}, {"email": {"format": "email"}})
        travel = [{"role": "user", "content": words["people"].format(n=n, day=day)}]
        trip = {"people": {"type": "int", "description": "How many people?"}, "arrival": {"type": "date"}}
        yield Case("travel", language, travel, trip, {"people": n, "arrival": day}, {"arrival": {"extract": True}})
        kind = "inpatient" if at % 2 else "outpatient"
        asked = [{"role": "user", "content": words["claim"].format(kind=words[kind])}]
        yield Case("kind", language, asked, kinds, {"claim_type": kind})
        missing = [*claim, {"role": "user", "content": words["none"]}]
        yield Case("missing", language, missing, _NUMBER, {"policy_number": None}, _SIXTEEN)
