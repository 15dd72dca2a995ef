"""HF's tokenizer as the oracle, and texts to try it on. Used by the scripts beside this file."""

import gzip
import os
import pathlib
import random
import re
import struct
import subprocess
import sys

try:
    import tokenizers
    from tokenizers import Tokenizer
    from tokenizers.decoders import ByteLevel as ByteLevelDecoder
    from tokenizers.models import BPE, WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer, ByteLevel
    from tokenizers.trainers import BpeTrainer
except ImportError:
    sys.exit("the Python package tokenizers is missing, without it nothing can be compared: "
             "pip install tokenizers==0.23.3")

VERSION = "0.23.3"
if tokenizers.__version__ != VERSION:
    sys.exit(f"tokenizers {tokenizers.__version__} is installed, but the tables follow {VERSION}")


def hf_tokenizer(vocab, lowercase):
    """BertTokenizerFast without its special tokens, which it would find even in raw text."""
    tokenizer = Tokenizer(WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = BertNormalizer(clean_text=True, handle_chinese_chars=True,
                                          strip_accents=None, lowercase=lowercase)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer


ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def hf_bpe(folder, prefix):
    """RobertaTokenizerFast without its special tokens, which it would find even in raw text."""
    tokenizer = Tokenizer(BPE.from_file(str(folder / "vocab.json"), str(folder / "merges.txt")))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=prefix)
    tokenizer.decoder = ByteLevelDecoder()
    return tokenizer


def train_hf_bpe(folder, size, lines, min_count=2):
    """Writes vocab.json and merges.txt as ByteLevelBPETokenizer's trainer learns them."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(lines, BpeTrainer(
        vocab_size=size, min_frequency=min_count, special_tokens=ROBERTA_SPECIAL,
        show_progress=False, initial_alphabet=ByteLevel.alphabet()))
    tokenizer.model.save(str(folder))


def read_vocab(path):
    lines = pathlib.Path(path).read_bytes().split(b"\n")
    return {token.decode(): i for i, token in enumerate(lines) if token}


def hf_encode(tokenizer, lines):
    """(ids, word flags) of each line."""
    for encoding in tokenizer.encode_batch(lines, add_special_tokens=False):
        words = encoding.word_ids
        yield encoding.ids, [int(i == 0 or words[i] != words[i - 1]) for i in range(len(words))]


def frame(lines):
    encoded = [line if isinstance(line, bytes) else line.encode() for line in lines]
    return b"".join(struct.pack("=I", len(e)) + e for e in encoded)


def our_encode(tool, vocab_path, lowercase, lines):
    return our_ids(tool, vocab_path, "uncased" if lowercase else "cased", lines)


def our_ids(tool, path, option, lines):
    """(ids, word flags) of each line, by the tokenizer at `path`."""
    command = [tool, "encode", str(path), option]
    out = subprocess.run(command, input=frame(lines), stdout=subprocess.PIPE, check=True).stdout
    at = 0
    for _ in lines:
        (count,) = struct.unpack_from("=I", out, at)
        ids = list(struct.unpack_from(f"={count}I", out, at + 4))
        flags = list(out[at + 4 + 4 * count: at + 4 + 5 * count])
        at += 4 + 5 * count
        yield ids, flags
    if at != len(out):
        sys.exit(f"{tool} answered {len(out) - at} bytes too many")


def our_decode(tool, path, ids_of_lines):
    records = [struct.pack(f"={len(ids)}I", *ids) for ids in ids_of_lines]
    out = subprocess.run([tool, "decode", str(path)], input=frame(records), stdout=subprocess.PIPE,
                         check=True).stdout
    at = 0
    while at < len(out):
        (size,) = struct.unpack_from("=I", out, at)
        yield out[at + 4:at + 4 + size].decode()
        at += 4 + size


def our_files(tool, path, option, folder):
    """Lets our tokenizer write its files into `folder`."""
    subprocess.run([tool, "write", str(path), option, str(folder)], check=True)


def our_vocab(tool, size, min_count, lowercase, lines, threads=1):
    command = [tool, "train", str(size), str(min_count), str(threads),
               "uncased" if lowercase else "cased"]
    return subprocess.run(command, input=frame(lines), stdout=subprocess.PIPE, check=True).stdout


# ---------------------------------------------------------------------------------------- real text

FORTUNES = pathlib.Path("/usr/share/games/fortunes")
CHINESE_FORTUNES = ("tang300", "song100", "chinese")


def fortune_lines(names):
    for name in names:
        path = FORTUNES / name
        if not path.exists():
            sys.exit(f"{path} is missing: apt-get install fortunes-zh")
        text = path.read_text(encoding="utf-8", errors="replace")
        for line in re.sub(r"\x1b\[[0-9;]*m|\x1b\[m", "", text).split("\n"):
            if line.strip() and line.strip() != "%":
                yield line


def installed_lines(about):
    """Evenly chosen lines of whatever text is installed: fortunes, manuals, Python's library."""
    lines = list(all_installed_lines())
    return lines[::max(1, len(lines) // about)]


def all_installed_lines():
    names = [p.name for p in sorted(FORTUNES.glob("*")) if "." not in p.name and p.is_file()]
    yield from fortune_lines(dict.fromkeys([*CHINESE_FORTUNES, *names]))
    roots = ["/usr/share/man/zh_CN", "/usr/share/debian-reference", "/usr/share/doc/debian-handbook",
             os.path.dirname(os.__file__)]
    for root in roots:
        for path in sorted(pathlib.Path(root).rglob("*")):
            if path.suffix not in (".py", ".html", ".txt", ".gz") or not path.is_file():
                continue
            if "site-packages" in path.parts:
                continue
            data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
            yield from (line for line in data.decode("utf-8", "replace").split("\n") if line.strip())


# -------------------------------------------------------------------------------------- random text

SCRIPTS = [(0x20, 0x7F), (0x20, 0x7F), (0xA0, 0x250), (0x250, 0x300), (0x300, 0x370), (0x370, 0x400),
           (0x400, 0x530), (0x530, 0x590), (0x590, 0x700), (0x8A0, 0x980), (0x980, 0xE00),
           (0xE00, 0x1000), (0x1000, 0x1200), (0x1100, 0x1200), (0x1780, 0x1900), (0x1A00, 0x1C00),
           (0x1DC0, 0x1F00), (0x1F00, 0x2000), (0x2000, 0x2070), (0x2070, 0x2C00), (0x2C00, 0x3040),
           (0x3000, 0x3100), (0x4E00, 0x9FFF), (0xA640, 0xAC00), (0xAC00, 0xD7B0), (0xF900, 0xFB00),
           (0xFB00, 0xFE00), (0xFE00, 0x10000), (0x10000, 0x11000), (0x11000, 0x12000),
           (0x16800, 0x17000), (0x1D100, 0x1D300), (0x1D400, 0x1D800), (0x1E000, 0x1EF00),
           (0x1F000, 0x1FB00), (0x20000, 0x20100), (0x2F800, 0x2FA20), (0xE0000, 0xE0200),
           (0, 0x110000)]
# Whatever canonical ordering might move: marks that survive, marks that do not, starters between them.
MARKS = ([chr(c) for c in range(0x300, 0x370)]
         + list("\u034f\u08d4\u08d5\u0903\u093c\u094d\u0cbf\u0cd5\u0f71\u0f72\u0f73\u0f76\u1b44\u1baa"
                "\u1bf2\u1dfa\u1dfb\u302e\u302f\ua953\ua9c0\U000111c0\U00011446\U00011442\U00016ff0"
                "\U0001d165\U0001d166\U0001d16d\U0001d16e\U0001d172\U0001e000\U0001e944\U0001e94a"
                "\u200d\u00ad\ufffd\ufe0f \u0001a\u00e9\u1ea4\u2260\u4e2d\u3099\u0d4a\U0001d160\U0001d1bf"))


def random_line(rng):
    kind = rng.random()
    if kind < 0.25:
        return "".join(rng.choice(MARKS) for _ in range(rng.randint(1, 25)))
    scripts = [rng.choice(SCRIPTS) for _ in range(rng.randint(1, 3))]
    out = []
    for _ in range(rng.randint(1, 60 if kind < 0.97 else 260)):
        low, high = rng.choice(scripts)
        c = rng.randrange(low, high)
        if not 0xD800 <= c < 0xE000:
            out.append(chr(c))
        if rng.random() < 0.08:
            out.append(rng.choice(" \t\u3000\n#[]-"))
        if rng.random() < 0.1:
            out.append(rng.choice(MARKS))
    return "".join(out)


def random_lines(count, seed):
    rng = random.Random(seed)
    return [random_line(rng) for _ in range(count)]
