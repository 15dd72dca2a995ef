#include <sentencepiece_processor.h>

#include <array>
#include <optional>
#include <span>

#include "data/errors.h"
#include "data/tokenizer/bounded_file.h"
#include "data/tokenizer/fingerprint.h"
#include "data/tokenizer/special_names.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/tokenizer_json.h"
#include "data/tokenizer/utf8.h"

namespace tupelo {
namespace {

using Processor = ::sentencepiece::SentencePieceProcessor;

constexpr std::size_t kMaxModelBytes = std::size_t{64} << 20;
constexpr std::string_view kWordMark = "\u2581";  // stands for the space before a word

// The model's own special tokens, under BERT's or RoBERTa's names; those that it lacks go behind
// its pieces.
class SpecialPieces {
 public:
  SpecialPieces(const Processor& processor, const std::string& where)
      : processor_(processor), where_(where) {}

  SpecialTokens find() {
    SpecialTokens special;
    special.unk = static_cast<std::uint32_t>(processor_.unk_id());
    special.cls = id_of(kBertNames.cls, kRobertaNames.cls);
    special.sep = id_of(kBertNames.sep, kRobertaNames.sep);
    special.pad = id_of(kBertNames.pad, kRobertaNames.pad);
    special.mask = id_of(kBertNames.mask, kRobertaNames.mask);
    return special;
  }

  std::vector<std::string> added;

 private:
  std::uint32_t id_of(const char* first, const char* second) {
    for (const char* name : {first, second}) {
      const int id = processor_.PieceToId(name);
      if (processor_.IsUnknown(id)) continue;
      if (!processor_.IsControl(id)) {
        throw CorpusError(where_ + ": the piece '" + name +
                          "' is no control symbol, so that text could become it");
      }
      return static_cast<std::uint32_t>(id);
    }
    added.emplace_back(second);
    return static_cast<std::uint32_t>(processor_.GetPieceSize()) +
           static_cast<std::uint32_t>(added.size()) - 1;
  }

  const Processor& processor_;
  const std::string& where_;
};

// Pieces that stand for no bytes of their own, such as the mark of a space in front of a line or
// all bytes but the last of a character, share those of the next one that does, else of the one
// before.
void share_spans(std::span<TextSpan> spans) {
  for (std::size_t i = spans.size(); i-- > 0;) {
    if (spans[i].begin == spans[i].end && i + 1 < spans.size()) spans[i] = spans[i + 1];
  }
  for (std::size_t i = 1; i < spans.size(); ++i) {
    if (spans[i].begin == spans[i].end) spans[i] = spans[i - 1];
  }
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string model, const std::string& where) : model_(std::move(model)) {
    if (!processor_.LoadFromSerializedProto(model_).ok() || processor_.GetPieceSize() < 1) {
      throw CorpusError(where + ": not a SentencePiece model");
    }
    SpecialPieces pieces(processor_, where);
    special_tokens_ = pieces.find();
    const int size = processor_.GetPieceSize();
    for (int id = 0; id < size; ++id) {
      tokens_.push_back(processor_.IdToPiece(id));
      begins_word_.push_back(tokens_.back().starts_with(kWordMark) ? 1 : 0);
      if (processor_.IsControl(id) || processor_.IsUnknown(id) || processor_.IsUnused(id)) {
        reserved_ids_.push_back(static_cast<std::uint32_t>(id));
      }
    }
    for (const std::string& name : pieces.added) {
      reserved_ids_.push_back(vocab_size());
      tokens_.push_back(name);
    }
    fingerprint_ = sha256_hex(std::string("sentencepiece\n").append(model_));
  }

  void encode(std::string_view text, std::vector<std::uint32_t>& ids,
              std::vector<std::uint8_t>* word_start) const override;
  void encode_with_spans(std::string_view text, std::vector<std::uint32_t>& ids,
                         std::vector<std::uint8_t>& word_start,
                         std::vector<TextSpan>& spans) const override;
  std::string decode(const std::vector<std::uint32_t>& ids) const override;

  std::uint32_t vocab_size() const override { return static_cast<std::uint32_t>(tokens_.size()); }
  const std::string& token(std::uint32_t id) const override {
    check_id(id);
    return tokens_[id];
  }
  const SpecialTokens& special_tokens() const override { return special_tokens_; }
  const std::vector<std::uint32_t>& reserved_ids() const override { return reserved_ids_; }
  std::string kind() const override { return kSentencePieceKind; }
  std::string fingerprint() const override { return fingerprint_; }
  std::vector<TokenizerFile> files() const override { return sentencepiece_files(model_); }

 private:
  void encode_line(std::string_view line, std::vector<std::uint32_t>& ids,
                   std::vector<std::uint8_t>* word_start) const;

  std::string model_;
  Processor processor_;
  std::vector<std::string> tokens_;
  std::vector<std::uint8_t> begins_word_;  // of the model's pieces
  SpecialTokens special_tokens_;
  std::vector<std::uint32_t> reserved_ids_;
  std::string fingerprint_;
};

// As the library's own tools do: its memory grows with the text that it is given at once.
void SentencePieceTokenizer::encode(std::string_view text, std::vector<std::uint32_t>& ids,
                                    std::vector<std::uint8_t>* word_start) const {
  std::string copy;
  if (!is_valid_utf8(text)) text = copy = well_formed(text);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    encode_line(text.substr(0, end), ids, word_start);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void SentencePieceTokenizer::encode_line(std::string_view line, std::vector<std::uint32_t>& ids,
                                         std::vector<std::uint8_t>* word_start) const {
  std::vector<int> pieces;
  const auto status = processor_.Encode({line.data(), line.size()}, &pieces);
  if (!status.ok()) {
    throw CorpusError(std::string("SentencePiece cannot encode a line: ") + status.ToString());
  }
  bool first = true;
  for (const int piece : pieces) {
    ids.push_back(static_cast<std::uint32_t>(piece));
    if (word_start == nullptr) continue;
    word_start->push_back(first ? 1 : begins_word_[static_cast<std::size_t>(piece)]);
    first = false;
  }
}

void SentencePieceTokenizer::encode_with_spans(std::string_view text,
                                               std::vector<std::uint32_t>& ids,
                                               std::vector<std::uint8_t>& word_start,
                                               std::vector<TextSpan>& spans) const {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::size_t first = spans.size();
    const auto encoded = processor_.EncodeAsImmutableProto({text.data() + begin, end - begin});
    for (const auto& piece : encoded.pieces()) {
      ids.push_back(piece.id());
      word_start.push_back(spans.size() == first ? 1 : begins_word_[piece.id()]);
      spans.push_back({begin + piece.begin(), begin + piece.end()});
    }
    share_spans(std::span(spans).subspan(first));
    begin = end + 1;
  }
}

std::string SentencePieceTokenizer::decode(const std::vector<std::uint32_t>& ids) const {
  std::string text;
  std::vector<int> pieces;
  const auto flush = [&] {
    std::string part;
    if (!pieces.empty() && processor_.Decode(pieces, &part).ok()) text += part;
    pieces.clear();
  };
  const auto model_size = static_cast<std::uint32_t>(processor_.GetPieceSize());
  for (const std::uint32_t id : ids) {
    check_id(id);
    const bool ordinary = id < model_size && !processor_.IsControl(static_cast<int>(id));
    if (ordinary) {
      pieces.push_back(static_cast<int>(id));
    } else {
      flush();
      text += tokens_[id];
    }
  }
  flush();
  return text;
}

}  // namespace

std::unique_ptr<Tokenizer> load_sentencepiece(const std::filesystem::path& model_file) {
  return std::make_unique<SentencePieceTokenizer>(
      read_bounded_file(model_file, kMaxModelBytes, "SentencePiece model"),
      "SentencePiece model " + model_file.string());
}

}  // namespace tupelo
