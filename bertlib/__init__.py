"""bertlib: from a dot product to a working BERT, one readable module at a time.

Each module is one chapter's subject. Importing `bertlib` imports nothing else, so a tool that only reads the claims
does not pay for torch; `from bertlib import BertConfig` and `from bertlib import attention` fetch what they name.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOME = {
    "Bert": "bertlib.models",
    "BertConfig": "bertlib.config",
    "BertForMaskedLM": "bertlib.models",
    "BertForQuestionAnswering": "bertlib.models",
    "BertForSequenceClassification": "bertlib.models",
    "BertForTokenClassification": "bertlib.models",
    "CausalBert": "bertlib.models",
    "ElectraDiscriminator": "bertlib.models",
    "WordPieceTokenizer": "bertlib.tokenization",
    "count_parameters": "bertlib.config",
    "fast_matmul": "bertlib.precision",
}

__all__ = sorted(_HOME)


def __dir__():
    return sorted({*globals(), *__all__})


def __getattr__(name):
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'bertlib' has no attribute {name!r}")
