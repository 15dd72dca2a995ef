#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "data/errors.h"
#include "tests/data/tokenizer/test_vocabulary.h"

namespace tupelo::tokenizer_json_test {
namespace {

using testing::byte_bpe_files_of;
using testing::byte_bpe_tokens;
using testing::make_wordpiece;
using testing::TemporaryFiles;
using Json = nlohmann::json;
using Ids = std::vector<std::uint32_t>;

std::unique_ptr<Tokenizer> make_byte_bpe(ByteBpeOptions options = {}) {
  const std::vector<std::string> merges{"a b", "Ġ ab"};
  const TemporaryFiles folder(byte_bpe_files_of(byte_bpe_tokens(merges), merges));
  return load_byte_bpe(folder / "vocab.json", folder / "merges.txt", options);
}

std::string json_of(const Tokenizer& tokenizer) {
  for (const TokenizerFile& file : tokenizer.files()) {
    if (file.name == "tokenizer.json") return file.content;
  }
  return {};
}

std::unique_ptr<Tokenizer> load(const std::string& json) {
  const TemporaryFiles folder({{"tokenizer.json", json}});
  return load_tokenizer_json(folder / "tokenizer.json");
}

void expect_same(const Tokenizer& a, const Tokenizer& b) {
  EXPECT_EQ(a.fingerprint(), b.fingerprint());
  EXPECT_EQ(a.kind(), b.kind());
  EXPECT_EQ(a.reserved_ids(), b.reserved_ids());
  EXPECT_EQ(a.special_tokens().mask, b.special_tokens().mask);
  EXPECT_EQ(a.special_tokens().sep, b.special_tokens().sep);
}

TEST(TokenizerJson, BringsBackWhatWasWritten) {
  for (const bool flag : {false, true}) {
    const auto wordpiece = make_wordpiece({"a", "##b", "\"\\", "中"}, {.lowercase = flag});
    expect_same(*load(json_of(*wordpiece)), *wordpiece);
    const auto byte_bpe = make_byte_bpe({.add_prefix_space = flag});
    expect_same(*load(json_of(*byte_bpe)), *byte_bpe);
  }
}

TEST(TokenizerJson, ReadsMergesAsPairsToo) {
  const auto tokenizer = make_byte_bpe();
  Json json = Json::parse(json_of(*tokenizer));
  json["model"]["merges"] = Json::parse(R"([["a", "b"], ["Ġ", "ab"]])");
  expect_same(*load(json.dump()), *tokenizer);
}

TEST(TokenizerJson, TakesTokensThatStandOnlyInTheListOfAddedOnes) {
  const auto tokenizer = make_byte_bpe();
  Json json = Json::parse(json_of(*tokenizer));
  json["added_tokens"].push_back(
      {{"id", tokenizer->vocab_size()}, {"content", "<extra>"}, {"special", true}});
  const auto more = load(json.dump());
  EXPECT_EQ(more->vocab_size(), tokenizer->vocab_size() + 1);
  EXPECT_EQ(more->reserved_ids().back(), tokenizer->vocab_size());
}

// What is said after `change`, without the file's name and the list of what is supported.
std::string complaint(const Tokenizer& tokenizer, const std::function<void(Json&)>& change) {
  Json json = Json::parse(json_of(tokenizer));
  change(json);
  try {
    load(json.dump());
  } catch (const CorpusError& error) {
    const std::string what = error.what();
    const std::size_t begin = what.find(".json: ") + 7;
    return what.substr(begin, what.find(';') - begin);
  }
  return "nothing";
}

TEST(TokenizerJson, RefusesByName) {
  const auto wordpiece = make_wordpiece({"a", "##b"});
  const auto byte_bpe = make_byte_bpe();
  const auto with_wordpiece = [&](const std::function<void(Json&)>& change) {
    return complaint(*wordpiece, change);
  };
  const auto with_bpe = [&](const std::function<void(Json&)>& change) {
    return complaint(*byte_bpe, change);
  };
  EXPECT_EQ(with_bpe([](Json&) {}), "nothing");
  EXPECT_EQ(with_bpe([](Json& j) { j["model"]["type"] = "Unigram"; }), "has the model 'Unigram'");
  EXPECT_EQ(with_bpe([](Json& j) {
              j["normalizer"] = {{"type", "NFC"}};
            }),
            "has BPE with the normalizer 'NFC'");
  EXPECT_EQ(with_bpe([](Json& j) {
              j["pre_tokenizer"] = {{"type", "Sequence"}};
            }),
            "has BPE with the pre_tokenizer 'Sequence'");
  EXPECT_EQ(with_bpe([](Json& j) { j["pre_tokenizer"]["use_regex"] = false; }),
            "pre_tokenizer has 'use_regex' false, but only true is supported");
  EXPECT_EQ(with_bpe([](Json& j) { j["model"]["dropout"] = 0.1; }),
            "model has 'dropout' 0.1, but only null is supported");
  EXPECT_EQ(with_bpe([](Json& j) { j["model"]["ignore_merges"] = true; }),
            "model has 'ignore_merges' true, but only false is supported");
  EXPECT_EQ(with_bpe([](Json& j) { j["model"]["end_of_word_suffix"] = "</w>"; }),
            "model has 'end_of_word_suffix' \"</w>\", but only null or \"\" is supported");
  EXPECT_EQ(with_bpe([](Json& j) { j["model"]["new"] = 1; }),
            "model has the key 'new', which is not known here");
  EXPECT_EQ(with_bpe([](Json& j) { j["model"]["merges"][1] = 7; }),
            "model has merge 2 that is not two tokens");
  EXPECT_EQ(with_bpe([](Json& j) { j["model"].erase("merges"); }), "model has no list 'merges'");
  EXPECT_EQ(with_bpe([](Json& j) { j["model"]["merges"][1] = "Ġ zz"; }),
            "merge 2 names 'zz', which is not in the vocabulary");
  EXPECT_EQ(with_bpe([](Json& j) { j["post_processor"]["type"] = "Sequence"; }),
            "has the post_processor 'Sequence'");
  EXPECT_EQ(with_bpe([](Json& j) { j["decoder"]["type"] = "Metaspace"; }),
            "has the decoder 'Metaspace'");
  EXPECT_EQ(with_bpe([](Json& j) {
              j["truncation"] = {{"max_length", 9}};
            }),
            "has 'truncation' {\"max_length\":9}, but only null is supported");
  EXPECT_EQ(with_bpe([](Json& j) { j["added_tokens"][0]["special"] = false; }),
            "has the added token '<s>' that is not special, so that words with it would be cut");
  EXPECT_EQ(with_bpe([](Json& j) { j["added_tokens"][0]["id"] = 9; }),
            "has the added token '<s>' with an id that is neither its own nor the next: 9");
  EXPECT_EQ(with_bpe([](Json& j) { j["model"] = 5; }), "model is not an object");
  EXPECT_EQ(with_bpe([](Json& j) { j = Json::array(); }), "is not an object");

  EXPECT_EQ(with_wordpiece([](Json&) {}), "nothing");
  EXPECT_EQ(with_wordpiece([](Json& j) { j["normalizer"]["strip_accents"] = false; }),
            "normalizer has 'strip_accents' false, but only null or true is supported");
  EXPECT_EQ(with_wordpiece([](Json& j) {
              j["normalizer"] = {{"type", "Lowercase"}};
            }),
            "has WordPiece with the normalizer 'Lowercase'");
  EXPECT_EQ(with_wordpiece([](Json& j) {
              j["pre_tokenizer"] = {{"type", "Whitespace"}};
            }),
            "has WordPiece with the pre_tokenizer 'Whitespace'");
  EXPECT_EQ(with_wordpiece([](Json& j) { j["model"]["max_input_chars_per_word"] = 50; }),
            "model has 'max_input_chars_per_word' 50, but only 100 is supported");
  EXPECT_EQ(with_wordpiece([](Json& j) { j["model"]["vocab"]["a b"] = 7; }),
            "the token 'a b' is empty, holds white space or is longer than 1024 bytes");
  EXPECT_EQ(with_wordpiece([](Json& j) { j["normalizer"].erase("lowercase"); }),
            "normalizer has 'lowercase' null, but only true or false is supported");
}

// Some bytes overwritten, left out, doubled or cut off.
std::string damaged(std::string text, std::mt19937_64& random) {
  const std::uint64_t changes = 1 + random() % 4;
  for (std::uint64_t i = 0; i < changes && text.size() > 1; ++i) {
    const std::size_t at = random() % (text.size() - 1);
    const std::string letters = "{}[]\",:0129 \\utrue\xC3\x80";
    switch (random() % 4) {
      case 0:
        text[at] = letters[random() % letters.size()];
        break;
      case 1:
        text.erase(at, 1 + random() % 40);
        break;
      case 2:
        text.insert(at, text.substr(random() % text.size(), 1 + random() % 40));
        break;
      default:
        if (random() % 20 == 0) text.resize(at);
        text[text.size() - 1] = static_cast<char>(random());
    }
  }
  return text;
}

TEST(TokenizerJson, SurvivesAnyDamage) {
  std::mt19937_64 random(3);
  std::size_t loaded = 0, refused = 0;
  for (const std::string& whole :
       {json_of(*make_byte_bpe()), json_of(*make_wordpiece({"a", "##b", "中", "!"}))}) {
    for (int i = 0; i < 250; ++i) {
      try {
        const auto tokenizer = load(damaged(whole, random));
        Ids ids;
        tokenizer->encode("ab b! 中", ids);
        for (const std::uint32_t id : ids) ASSERT_LT(id, tokenizer->vocab_size());
        tokenizer->decode(ids);
        ++loaded;
      } catch (const CorpusError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(loaded, 2u);
  EXPECT_GT(refused, 150u);
}

}  // namespace
}  // namespace tupelo::tokenizer_json_test
