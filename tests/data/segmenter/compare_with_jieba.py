#!/usr/bin/env python3
"""Cuts text with jieba, HMM off, and with ours; any difference is a failure.

    compare_with_jieba.py TOOL                 installed Chinese text, random text, user dictionaries
    compare_with_jieba.py TOOL CORPUS.zst      paragraphs of a corpus as well
"""

import itertools
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

try:
    import jieba
except ImportError:
    sys.exit("the Python package jieba is missing, without it nothing can be compared: "
             "pip install jieba==0.42.1")

VERSION = "0.42.1"
if jieba.__version__ != VERSION:
    sys.exit(f"jieba {jieba.__version__} is installed, but the rules follow {VERSION}")

DICTIONARY = pathlib.Path(jieba.__file__).parent / "dict.txt"
CORPUS_PARAGRAPHS = 8_000

# Words to keep whole, to forbid, to weigh; with and without frequency and tag; known ones and new ones.
USER_WORDS = """云计算
凱特琳 nz
李小福 2 nr
创新办 3 i
韩玉赏鉴 3 nz
八一双鹿 3 nz
easy_install 3 eng
Edu Trust认证 2000
c++20
中国 0
人民 1000000 n
学习机器
学习机器人
之乎者也
\u3400\u4dbf
T恤衫 n

的了 7
"""


def jieba_ends(tokenizer, text):
    ends, at = [], 0
    for word in tokenizer.cut(text, HMM=False):
        at += len(word.encode())
        ends.append(at)
    return ends


def our_ends(tool, dictionaries, texts):
    encoded = [text.encode() for text in texts]
    records = b"".join(struct.pack("=I", len(e)) + e for e in encoded)
    out = subprocess.run([tool, *map(str, dictionaries)], input=records, stdout=subprocess.PIPE, check=True).stdout
    at = 0
    for _ in texts:
        (count,) = struct.unpack_from("=I", out, at)
        yield list(struct.unpack_from(f"={count}I", out, at + 4))
        at += 4 + 4 * count


def compare(name, tool, tokenizer, dictionaries, texts, minimum):
    words = 0
    for text, got in zip(texts, our_ends(tool, dictionaries, texts)):
        want = jieba_ends(tokenizer, text)
        words += len(want)
        if got != want:
            sys.exit(f"{name}: {text!r}\n  jieba {want}\n  ours  {got}")
    print(f"{name}: {len(texts)} texts, {words} words, 0 differences", flush=True)
    if len(texts) < minimum:
        sys.exit(f"{name}: only {len(texts)} texts, at least {minimum} were to be compared")


def installed_lines():
    """Lines of the package fortunes-zh."""
    lines = []
    for name in ("chinese", "tang300", "song100"):
        path = pathlib.Path("/usr/share/games/fortunes") / name
        if path.exists():
            lines += path.read_text(encoding="utf-8", errors="replace").splitlines()
    return list(dict.fromkeys(line for line in lines if line.strip()))[:8_000]


def random_lines(count, seed):
    """Words of the dictionary, their halves, and characters of all kinds, in any order."""
    rng = random.Random(seed)
    words = [line.split(" ")[0] for line in DICTIONARY.read_text(encoding="utf-8").splitlines()]
    odd = list("abXYZ0189+#&._%- \t\r\n\u3000\x85\x1c，。！“”…é\u0301Ωжあア한\u3400\u4dbf\u9fd5\u9fd6\U00020000\U0001F600")
    odd += ["\r\n", "c++", "C#", "AT&T", "3.14", "50%", "x_1", "\n\r"]

    def part():
        kind = rng.random()
        if kind < 0.4:
            return rng.choice(words)
        if kind < 0.6:
            word = rng.choice(words)
            return word[rng.randrange(len(word)):]
        if kind < 0.7:
            return chr(rng.randrange(0x4E00, 0x9FFF))
        return rng.choice(odd)

    return ["".join(part() for _ in range(rng.randint(1, 40))) for _ in range(count)]


def corpus_paragraphs(path):
    with subprocess.Popen(["zstd", "-dc", path], stdout=subprocess.PIPE) as zstd:
        text = (line.decode("utf-8", "replace").rstrip("\n") for line in zstd.stdout)
        yield from itertools.islice((line for line in text if line), CORPUS_PARAGRAPHS)
        zstd.kill()


def user_tokenizer(path):
    tokenizer = jieba.Tokenizer()
    tokenizer.load_userdict(str(path))
    return tokenizer


def main(tool, corpus=None):
    jieba.setLogLevel(60)
    with tempfile.TemporaryDirectory() as folder:
        user = pathlib.Path(folder) / "user.txt"
        words = [line.split(" ")[0] for line in DICTIONARY.read_text(encoding="utf-8").splitlines()]
        rng = random.Random(7)
        joined = ["".join(rng.sample(words, 2)) for _ in range(300)]
        user.write_text(USER_WORDS + "\n".join(joined) + "\n", encoding="utf-8")
        random_text = random_lines(6_000, seed=4)
        user_text = ["".join(rng.choice(USER_WORDS.split() + joined + words) for _ in range(12))
                     for _ in range(2_000)]
        cases = ((jieba.Tokenizer(), [DICTIONARY]), (user_tokenizer(user), [DICTIONARY, user]))
        for tokenizer, dictionaries in cases:
            name = f"{len(dictionaries)} dictionaries"
            if corpus:
                compare(f"{name}, corpus", tool, tokenizer, dictionaries, list(corpus_paragraphs(corpus)),
                        CORPUS_PARAGRAPHS)
                continue
            compare(f"{name}, installed", tool, tokenizer, dictionaries, installed_lines(), 6_000)
            compare(f"{name}, random", tool, tokenizer, dictionaries, random_text, 6_000)
            compare(f"{name}, user words", tool, tokenizer, dictionaries, user_text, 2_000)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
