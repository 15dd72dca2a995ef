// Names and numbers of a shard's layout; data/FORMAT.md explains them.
#pragma once

#include <cstdint>

namespace tupelo::shard_layout {

inline constexpr const char* kFormat = "tupelo-corpus";
inline constexpr std::uint64_t kVersion = 2;

inline constexpr const char* kTokens = "tokens";
inline constexpr const char* kDocOffsets = "doc_offsets";
inline constexpr const char* kWordStart = "word_start";
inline constexpr const char* kSentStart = "sent_start";
inline constexpr const char* kDocSource = "doc_source";
inline constexpr const char* kDocHash = "doc_hash";
inline constexpr const char* kBlockSums = "block_crc32c";

// doc_source of a document from input file number 65535 or later.
inline constexpr std::uint64_t kLastSource = 0xFFFF;

// Largest vocabulary whose ids fit 16 bits.
inline constexpr std::uint32_t kNarrowVocabulary = 1u << 16;

}  // namespace tupelo::shard_layout
