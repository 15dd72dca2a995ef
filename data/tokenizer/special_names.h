// How the kinds of tokenizer call their special tokens.
#pragma once

namespace tupelo {

struct SpecialNames {
  const char *pad, *unk, *cls, *sep, *mask;
};

inline constexpr SpecialNames kBertNames{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
inline constexpr SpecialNames kRobertaNames{"<pad>", "<unk>", "<s>", "</s>", "<mask>"};

}  // namespace tupelo
