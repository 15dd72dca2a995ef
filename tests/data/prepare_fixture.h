// Texts in two languages and what prepare_corpus makes of them.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "data/prepare.h"
#include "tests/data/sample_corpus.h"

namespace tupelo {

// Chinese-looking and English-looking lines from a small set of words, so that a vocabulary can be
// learned from them.
inline std::string made_up_text(std::uint64_t seed, int documents) {
  const std::vector<std::string> words = {"春天",  "的",   "风", "吹过",    "山谷", "river",
                                          "stone", "，",   "。", "morning", "云",   "Naïve",
                                          "窗前",  "明月", "42", "light",   "疑是", "地上霜"};
  std::mt19937_64 random(seed);
  std::string text;
  for (int d = 0; d < documents; ++d) {
    const std::uint64_t lines = 1 + random() % 4;
    for (std::uint64_t line = 0; line < lines; ++line) {
      const std::uint64_t count = 3 + random() % 20;
      for (std::uint64_t w = 0; w < count; ++w) {
        text += words[random() % words.size()];
        if (random() % 2 == 0) text += " ";
      }
      text += "\n";
    }
    text += "\n";
  }
  return text;
}

class PrepareTest : public testing::Test {
 protected:
  PrepareTest() {
    std::filesystem::create_directory(folder_ / "in");
    write_bytes(folder_ / "in/a.txt", made_up_text(1, 400));
    write_bytes(folder_ / "in/b.txt", made_up_text(2, 300));
    write_bytes(folder_ / "in/c.jsonl",
                "{\"id\": 1, \"text\": \"春天 的 风\\nmorning\"}\n{\"text\": \"stone\"}\n");
  }

  PrepareOptions options(const std::string& output = "corpus") const {
    PrepareOptions options;
    options.inputs = {folder_ / "in"};
    options.output = folder_ / output;
    options.train_vocab_size = 120;
    options.held_out = 0.2;
    options.shard_tokens = 3000;
    return options;
  }

  // Nothing but the inputs and these is in the folder.
  void expect_only(std::vector<std::string> names) const {
    names.push_back("in");
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      found.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, names);
  }

  template <typename Exception>
  std::string refusal(const PrepareOptions& chosen) const {
    const std::string message = message_of<Exception>([&] { prepare_corpus(chosen); });
    EXPECT_FALSE(std::filesystem::exists(chosen.output));
    return message;
  }

  // Runs in a process of its own; returns how it ended.
  static int in_child(const std::function<int()>& action) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(action());
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }

  TemporaryFolder folder_;
};

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace tupelo
