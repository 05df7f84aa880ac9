"""Guards that need no model: forged role lines, template tokens and orders inside text that has no authority.

Context and user messages are looked at, after Unicode compatibility folding and without invisible characters, so that
full-width or interrupted spellings count. A finding never changes a text. It says which values must be reviewed: those
copied out of the text, and all that the model wrote after having read it.
"""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

import regex

from pollux_like.typed.conversation import Text

_ROLES = (
    "cs|customer (?:service|support|care)|agent|assistant|system(?: message| prompt| note)?|support|bot"
    "|admin(?:istrator)?|operator|moderator|staff|supervisor|manager"
    "|claims? (?:team|department|officer|agent)|developer|tool|function|ai"
    "|model|gpt|claude|user|human|agente|asistente|sistema|soporte|operador|supervisor|atenci[oó]n al cliente"
    "|kundenservice|kundendienst|mitarbeiter(?:in)?|assistent|sachbearbeiter(?:in)?"
    "|syst[eè]me|conseiller|service client"
    "|layanan pelanggan|petugas|asisten|sistem|atendente|suporte|assistente|servizio clienti|operatore"
    "|поддержка|оператор|система|ассистент|агент|администратор"
    "|客服|系统|系統|助手|助理|管理员|管理員|システム|サポート|オペレーター|アシスタント|担当者|시스템|상담원|고객센터"
    "|النظام|الدعم|خدمة العملاء|المساعد|الموظف|מערכת|שירות לקוחות|नोट|सिस्टम|सहायक|ग्राहक सेवा"
    "|hệ thống|nhân viên|ระบบ|เจ้าหน้าที่"
)
_KINDS = {
    "template_token": (
        r"<\s*[|｜][^<>\n]{1,40}>|<[^<>|｜\n]{1,40}[|｜]\s*>|\[[|｜][^\[\]\n]{1,40}[|｜]\]|\[/?\s*INST\s*\]|<</?\s*SYS\s*>>|</?s>|<\s*/?\s*(?:start|end)_of_turn\s*>"
        r"|<\s*(?:bos|eos|pad|unk)\s*>|\[/?(?:BOS|EOS|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|SYSTEM_PROMPT|gMASK)\]"
        r"|<\s*/?\s*(?:think|tool_call|tool_response|sop|eop)\s*>"
    ),
    "forged_role": (
        rf"(?:^|[\n.!?…。！？;|>*\-–—\"'“”„(\[][ \t]*|\s)(?:\*\*|__|\[|<|#{{1,6}}[ \t]*)?(?:{_ROLES})"
        r"\s*+(?:\([^()\n]{0,40}\))?+"
        r"(?:\*\*|__|\]|>)?+\s*+(?:\[[^\]\n]{0,40}\])?+\s*+(?:[:：]|=>|->|»)"
    ),
    "forged_markup": (
        r"[\"']?role[\"']?\s*[:=]\s*[\"']?(?:system|assistant|developer|tool)|<\s*/?\s*(?:system|assistant|developer"
        r"|instructions?|admin|tool_result|function_results?)\b[^<>\n]{0,60}>|^[ \t]*#{1,6}[ \t]*(?:system|assistant"
        r"|instructions?|response)\b"
        r"|(?:begin|end|start) (?:of )?(?:system|admin|developer) (?:prompt|message|instructions?)"
    ),
    "forged_field": r"known values\b|^[ \t]*field[ \t]*:|^[ \t]*[a-z][a-z0-9]*_[a-z0-9_]+[ \t]*=",
    "orders": (
        r"(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instructions?|rules?|prompts?|above|previous|policy"
        r"|guard\w*)"
        r"|you are now\b|pretend (?:to be|you)|act as\b|new instructions?|developer mode|jailbreak"
        r"|(?:set|mark|answer|output|"
        r"return|write|respond|reply)\b.{0,60}(?:approved|true|confirmed|verified|paid)"
        r"|ignor(?:a|e|iere|ez|er)\b.{0,40}(?:instruc|anweisung|règles|reglas|consignes)|vergiss\b.{0,40}anweisung"
        r"|abaikan\b.{0,40}(?:instruksi|aturan|perintah)|oublie[zr]?\b.{0,40}(?:instructions|consignes)"
        r"|игнорируй\b.{0,40}|忽略.{0,12}(?:指令|指示|规则|說明|说明)|無視.{0,12}|指示.{0,6}無視|تجاهل.{0,30}|התעלם.{0,30}"
        r"|decode\b.{0,30}(?:base64|rot13|hex)|base64"
    ),
}
_FOUND = {kind: regex.compile(pattern, regex.I | regex.M | regex.V1) for kind, pattern in _KINDS.items()}
TIMEOUT_S = 2.0
"""Seconds that all detectors together may look at a conversation; one that does not finish counts as a finding."""


def without_tokens(text: str) -> str:
    """The text with a zero-width space inside everything that looks like a template token.

    For servers that render and tokenise by themselves: no text may open a turn there.
    """
    return _FOUND["template_token"].sub(lambda found: f"{found[0][0]}\u200b{found[0][1:]}", text)


@dataclass(frozen=True, slots=True)
class Flag:
    """A finding: which text, and of what kind. It quotes nothing."""

    source: str
    message: int | None
    kind: str


def flags(texts: Iterable[Text]) -> tuple[Flag, ...]:
    """Findings in the texts that a user or an outside document wrote."""
    found: list[Flag] = []
    until = time.monotonic() + TIMEOUT_S
    for text in texts:
        if text.role != "user":
            continue
        plain = folded(text.text)
        found += [Flag(text.source, text.message, kind) for kind, look in _FOUND.items() if _finds(look, plain, until)]
    return tuple(found)


def folded(text: str) -> str:
    """Compatibility characters unified, characters that print nothing left out."""
    kept = (c for c in unicodedata.normalize("NFKC", text) if c in "\n\t" or unicodedata.category(c) != "Cf")
    return "".join(kept).replace("\r\n", "\n").replace("\r", "\n")


def _finds(look: regex.Pattern[str], text: str, until: float) -> bool:
    try:
        return look.search(text, timeout=max(0.001, until - time.monotonic())) is not None
    except TimeoutError:
        return True
