#!/usr/bin/env python3
"""Writes the character tables of the tokenizers: data/tokenizer/bert_tables_<version>.cpp and
data/tokenizer/byte_level_tables_<version>.cpp.

Nothing here comes from a Unicode version: every property is read off the behaviour of the PyPI package
`tokenizers` (BertNormalizer, BertPreTokenizer, NFD, ByteLevel), one code point or one short string at a
time. The package mixes tables of several Unicode versions, so no single version could reproduce it.

    generate_unicode_tables.py            writes the tables
    generate_unicode_tables.py --check    fails when the committed tables differ by a single byte
"""

import argparse
import pathlib
import sys
import unicodedata

SUPPORTED_VERSION = "0.23.3"

try:
    import tokenizers
    from tokenizers.normalizers import NFD, BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer, ByteLevel
except ImportError:
    sys.exit("the Python package tokenizers is missing: pip install tokenizers==" + SUPPORTED_VERSION)

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
HANGUL = range(0xAC00, 0xD7A4)
FOLDER = pathlib.Path(__file__).resolve().parent.parent / "data" / "tokenizer"


def bert_normalizer(**flags):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return BertNormalizer(**{**off, **flags}).normalize_str


def require(condition, what):
    if not condition:
        sys.exit("the tables cannot express this version of tokenizers: " + what)


class Oracle:
    """What the package does to each single code point."""

    def __init__(self):
        clean = bert_normalizer(clean_text=True)
        isolate = bert_normalizer(handle_chinese_chars=True)
        strip = bert_normalizer(strip_accents=True)
        uncased = BertNormalizer(
            clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True
        ).normalize_str
        pre_tokenizer = BertPreTokenizer()
        self.nfd = NFD().normalize_str
        self.uncased_text = uncased

        cleaned = {c: clean(chr(c)) for c in CODE_POINTS}
        self.removed = {c for c, t in cleaned.items() if t == ""}
        self.space = {c for c, t in cleaned.items() if t == " "}
        require(all(t in ("", " ", chr(c)) for c, t in cleaned.items()), "clean_text maps letters")
        isolated = {c: isolate(chr(c)) for c in CODE_POINTS}
        self.cjk = {c for c, t in isolated.items() if t == f" {chr(c)} "}
        require(all(t == chr(c) for c, t in isolated.items() if c not in self.cjk), "CJK handling")

        words = {c: [w for w, _ in pre_tokenizer.pre_tokenize_str(f"x{chr(c)}y")] for c in CODE_POINTS}
        self.punctuation = {c for c, w in words.items() if w == ["x", chr(c), "y"]}
        split = {c for c, w in words.items() if w == ["x", "y"]}
        require(split - self.removed == self.space, "clean_text and the splitter disagree on space")
        rest = set(CODE_POINTS) - self.punctuation - split
        require(all(words[c] == [f"x{chr(c)}y"] for c in rest), "unknown behaviour of the splitter")
        for a, b in ((self.punctuation, self.removed), (self.punctuation, self.cjk),
                     (self.removed, self.cjk), (self.space, self.cjk)):
            require(not a & b, "classes overlap")

        self.decomposed = {c: self.nfd(chr(c)) for c in CODE_POINTS}
        self.stripped = {c for c in CODE_POINTS if strip(chr(c)) == ""}
        self.uncased = {}
        for c in CODE_POINTS:
            text = uncased(chr(c))
            if c in self.cjk:
                require(len(text) == 3 and text[0] == text[2] == " ", "CJK decomposition")
                text = text[1]
            self.uncased[c] = text


def combining_classes(oracle):
    """Canonical combining class of each code point, as the package's own NFD orders them."""
    nfd = oracle.nfd

    def swaps(first, second):
        return nfd("a" + first + second) != "a" + first + second

    references = {}
    for c in CODE_POINTS:
        value = unicodedata.combining(chr(c))
        if value and value not in references and oracle.decomposed[c] == chr(c):
            # A mark that is newer than the package's tables counts as a starter and never swaps.
            if swaps(chr(c), "\u0334") or swaps("\u0345", chr(c)):
                references[value] = chr(c)
    require(references[1] == "\u0334" and references[240] == "\u0345", "reference marks")

    classes = {}
    for c in CODE_POINTS:
        text = chr(c)
        if oracle.decomposed[c] != text or not (swaps(text, "\u0334") or swaps("\u0345", text)):
            continue
        equal = [v for v, r in references.items() if not swaps(r, text) and not swaps(text, r)]
        require(len(equal) == 1, f"U+{c:04X} has no definite combining class")
        classes[c] = equal[0]
    return classes


def uncased_tables(oracle, classes):
    """Splits the uncased behaviour into marks, non-starters and mappings."""
    marks, starter_marks, mapped = set(), set(), {}
    for c, text in oracle.uncased.items():
        if c in oracle.removed or c in oracle.space or c in HANGUL:
            continue
        if text == "":
            parts = [ord(p) for p in oracle.decomposed[c]]
            require(c in oracle.stripped, f"U+{c:04X} vanishes but is no mark")
            (marks if all(p in classes for p in parts) else starter_marks).add(c)
        elif text != chr(c):
            mapped[c] = [ord(t) for t in text]
    nonstarters = {c: v for c, v in classes.items() if c not in oracle.stripped}

    for c in nonstarters:
        require(oracle.uncased[c] == chr(c) and c not in oracle.punctuation | oracle.cjk | oracle.space,
                f"U+{c:04X} is reordered and changed")
    for c, text in mapped.items():
        require(text[0] not in classes, f"U+{c:04X} becomes a text that begins with a non-starter")
        require(not any(t in oracle.cjk for t in text) or c in oracle.cjk, "a letter becomes CJK")
        require(not any(t in oracle.removed | oracle.space for t in text), "a letter becomes space")
        require(len(text) == 1 or not any(t in oracle.punctuation for t in text), "inner punctuation")
        require(len(text) <= 3, "a mapping longer than three")
    for c in HANGUL:
        index = c - 0xAC00
        jamo = [0x1100 + index // 588, 0x1161 + index % 588 // 28]
        if index % 28:
            jamo.append(0x11A7 + index % 28)
        require(oracle.uncased[c] == "".join(map(chr, jamo)), "Hangul is not algorithmic")
    return marks, starter_marks, nonstarters, mapped


def ranges(values):
    """{code point: value} as sorted [first, last, value]."""
    out = []
    for c in sorted(values):
        if out and out[-1][1] + 1 == c and out[-1][2] == values[c]:
            out[-1][1] = c
        else:
            out.append([c, c, values[c]])
    return out


def runs(single):
    """{from: to} as runs [first, step, count, to, to_step] of three or more, and left-over pairs."""
    items, long_runs, pairs, i = sorted(single.items()), [], [], 0
    while i < len(items):
        count = 1
        if i + 1 < len(items):
            step, to_step = items[i + 1][0] - items[i][0], items[i + 1][1] - items[i][1]
            if step <= 2 and 0 <= to_step <= 2:
                while (i + count < len(items)
                       and items[i + count][0] == items[i][0] + count * step
                       and items[i + count][1] == items[i][1] + count * to_step):
                    count += 1
        if count >= 3:
            long_runs.append([items[i][0], step, count, items[i][1], to_step])
            i += count
        else:
            pairs.append(list(items[i]))
            i += 1
    return long_runs, pairs


def array(type_name, name, rows):
    cells = ["{" + ", ".join(str(v) if isinstance(v, str) else f"{v:#x}" for v in row) + "}"
             for row in rows]
    lines, line = [], "   "
    for cell in cells:
        if len(line) + len(cell) + 2 > 100:
            lines.append(line)
            line = "   "
        line += f" {cell},"
    lines.append(line)
    return f"constexpr {type_name} {name}[] = {{\n" + "\n".join(lines) + "\n};\n"


def render(oracle):
    marks, starter_marks, nonstarters, mapped = uncased_tables(oracle, combining_classes(oracle))
    kinds = {}
    for name, members in (("kRemoved", oracle.removed), ("kSpace", oracle.space),
                          ("kPunctuation", oracle.punctuation), ("kCjk", oracle.cjk)):
        kinds.update({c: name for c in members})
    kind_rows = ranges(kinds)
    mark_rows = ranges({**{c: "kMark" for c in marks}, **{c: "kStarterMark" for c in starter_marks}})
    run_rows, pair_rows = runs({c: t[0] for c, t in mapped.items() if len(t) == 1})
    text_rows = [[c] + t + [0] * (3 - len(t)) for c, t in sorted(mapped.items()) if len(t) > 1]
    return "".join([
        f"// Generated by scripts/generate_unicode_tables.py from tokenizers {SUPPORTED_VERSION}; "
        "do not edit.\n// clang-format off\n",
        '#include "data/tokenizer/bert_tables.h"\n\nnamespace tupelo::bert_tables {\nnamespace {\n\n'
        "using enum CharacterClass;\n\n",
        array("ClassRange", "kClassRanges", kind_rows), "\n",
        array("ClassRange", "kMarkRanges", mark_rows), "\n",
        array("CombiningRange", "kCombiningRanges", ranges(nonstarters)), "\n",
        array("MappingRun", "kMappingRuns", run_rows), "\n",
        array("MappingPair", "kMappingPairs", pair_rows), "\n",
        array("MappingText", "kMappingTexts", text_rows),
        "\n}  // namespace\n\n",
        f'std::string_view version() {{ return "bert-tables tokenizers-{SUPPORTED_VERSION}"; }}\n',
        "std::span<const ClassRange> class_ranges() { return kClassRanges; }\n",
        "std::span<const ClassRange> mark_ranges() { return kMarkRanges; }\n",
        "std::span<const CombiningRange> combining_ranges() { return kCombiningRanges; }\n",
        "std::span<const MappingRun> mapping_runs() { return kMappingRuns; }\n",
        "std::span<const MappingPair> mapping_pairs() { return kMappingPairs; }\n",
        "std::span<const MappingText> mapping_texts() { return kMappingTexts; }\n",
        "\n}  // namespace tupelo::bert_tables\n",
    ])


def byte_level_classes():
    """Which characters run together in the words of byte-level BPE; those in none are symbols."""
    split = ByteLevel(add_prefix_space=False, use_regex=True).pre_tokenize_str
    classes = {}
    for c in CODE_POINTS:
        joined = [name for before, name in (("a", "kLetter"), ("1", "kNumber"), ("!", None))
                  if len(split(before + chr(c))) == 1]
        require(len(joined) <= 1, f"U+{c:04X} runs together with characters of several classes")
        if not joined:
            words = len(split(f"a{chr(c)}a"))
            require(words == (2 if chr(c) == " " else 3), f"U+{c:04X} is neither space nor else")
            require(len(split(f" {chr(c)}")) == 1, f"U+{c:04X} does not run together with space")
        name = joined[0] if joined else "kSpace"
        if name:
            classes[c] = name
    return classes


def render_byte_level():
    return "".join([
        f"// Generated by scripts/generate_unicode_tables.py from tokenizers {SUPPORTED_VERSION}; "
        "do not edit.\n// clang-format off\n",
        '#include "data/tokenizer/byte_level_tables.h"\n\n'
        "namespace tupelo::byte_level_tables {\nnamespace {\n\nusing enum CharacterClass;\n\n",
        array("ClassRange", "kClassRanges", ranges(byte_level_classes())),
        "\n}  // namespace\n\n",
        f'std::string_view version() {{ return "byte-level-tables tokenizers-{SUPPORTED_VERSION}"; }}\n',
        "std::span<const ClassRange> class_ranges() { return kClassRanges; }\n",
        "\n}  // namespace tupelo::byte_level_tables\n",
    ])


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    arguments = parser.parse_args()
    if tokenizers.__version__ != SUPPORTED_VERSION:
        sys.exit(f"tokenizers {tokenizers.__version__} is installed, the tables are made from "
                 f"{SUPPORTED_VERSION}: pip install tokenizers=={SUPPORTED_VERSION}")
    version = SUPPORTED_VERSION.replace(".", "_")
    for name, text in (("bert_tables", render(Oracle())), ("byte_level_tables", render_byte_level())):
        target, content = FOLDER / f"{name}_{version}.cpp", text.encode()
        if not arguments.check:
            target.write_bytes(content)
            print(f"{target}: {len(content)} bytes")
        elif not target.exists() or target.read_bytes() != content:
            sys.exit(f"{target} differs from what tokenizers {SUPPORTED_VERSION} says: "
                     "generate it again")
        else:
            print(f"{target} is up to date")


if __name__ == "__main__":
    main()
