// Every small damage to any file of a checkpoint is found.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "checkpoints/checkpoint_store.h"
#include "tests/checkpoints/checkpoint_samples.h"
#include "tests/checkpoints/temporary_folder.h"

namespace tupelo::damaged_checkpoint_test {
namespace {

namespace fs = std::filesystem;

class DamagedCheckpoint : public testing::Test {
 protected:
  DamagedCheckpoint() {
    store_.save(sample_checkpoint(1));
    store_.save(sample_checkpoint(2));
  }

  fs::path file(std::int64_t step, const std::string& name) {
    return store_.folder_of(step) / name;
  }

  // Whether loading finds the damage and its message names `mention`.
  testing::AssertionResult is_found(const std::string& mention, std::int64_t step = 2) {
    try {
      store_.load(step);
    } catch (const CorruptCheckpoint& error) {
      if (std::string(error.what()).find(mention) != std::string::npos) {
        return testing::AssertionSuccess();
      }
      return testing::AssertionFailure() << error.what() << " does not name " << mention;
    } catch (const std::exception& error) {
      return testing::AssertionFailure() << "another error: " << error.what();
    }
    return testing::AssertionFailure() << "loaded";
  }

  template <typename Damage>
  void expect_all_found(const Damage& damages_of) {
    std::size_t tried = 0;
    for (const std::string& name : names_in(store_.folder_of(2))) {
      const std::string sound = bytes_of(file(2, name));
      for (const std::string& damaged : damages_of(sound)) {
        overwrite(file(2, name), damaged);
        ASSERT_TRUE(is_found(store_.folder_of(2).string())) << name << " variant " << tried;
        ++tried;
      }
      overwrite(file(2, name), sound);
    }
    ASSERT_GT(tried, 200u);
    EXPECT_TRUE(same_content(store_.load(2), sample_checkpoint(2)));
  }

  TemporaryFolder temporary_;
  CheckpointStore store_{temporary_.path(), {2}};
};

TEST_F(DamagedCheckpoint, EverySingleBitFlip) {
  expect_all_found([](const std::string& sound) {
    std::vector<std::string> flipped;
    for (std::size_t bit = 0; bit < 8 * sound.size(); ++bit) {
      flipped.push_back(sound);
      flipped.back()[bit / 8] = static_cast<char>(sound[bit / 8] ^ (1 << bit % 8));
    }
    return flipped;
  });
}

TEST_F(DamagedCheckpoint, EveryTruncationButThatOfTheManifestsLastNewline) {
  expect_all_found([](const std::string& sound) {
    std::vector<std::string> shorter;
    const std::size_t content = sound.size() - (sound.back() == '\n' ? 1 : 0);
    for (std::size_t size = 0; size < content; ++size) shorter.push_back(sound.substr(0, size));
    return shorter;
  });
}

TEST_F(DamagedCheckpoint, EveryZeroedBlock) {
  expect_all_found([](const std::string& sound) {
    std::vector<std::string> zeroed;
    for (const std::size_t block : {std::size_t{1}, std::size_t{16}, std::size_t{64}}) {
      for (std::size_t begin = 0; begin < sound.size(); begin += block) {
        std::string damaged = sound;
        damaged.replace(begin, block, std::min(block, sound.size() - begin), '\0');
        if (damaged != sound) zeroed.push_back(damaged);
      }
    }
    return zeroed;
  });
}

TEST_F(DamagedCheckpoint, BytesAppended) {
  for (const std::string& name : names_in(store_.folder_of(2))) {
    const std::string sound = bytes_of(file(2, name));
    for (const std::string& tail : {std::string(1, '\0'), std::string("x"), sound}) {
      overwrite(file(2, name), sound + tail);
      EXPECT_TRUE(is_found(name)) << name;
    }
    overwrite(file(2, name), sound);
  }
}

TEST_F(DamagedCheckpoint, FilesSwappedBetweenSteps) {
  for (const std::string& name : names_in(store_.folder_of(2))) {
    fs::rename(file(1, name), temporary_.path() / "aside");
    fs::rename(file(2, name), file(1, name));
    fs::rename(temporary_.path() / "aside", file(2, name));
    EXPECT_TRUE(is_found(name, 1));
    EXPECT_TRUE(is_found(name, 2));
    fs::rename(file(1, name), temporary_.path() / "aside");
    fs::rename(file(2, name), file(1, name));
    fs::rename(temporary_.path() / "aside", file(2, name));
  }
  EXPECT_TRUE(same_content(store_.load(2), sample_checkpoint(2)));
}

TEST_F(DamagedCheckpoint, AWholeCheckpointUnderTheNameOfAnotherStep) {
  fs::rename(store_.folder_of(2), store_.folder_of(3));
  EXPECT_TRUE(is_found("is that of step 2, not of step 3", 3));
}

TEST_F(DamagedCheckpoint, FilesSwappedInsideACheckpoint) {
  fs::rename(file(2, "model.safetensors"), temporary_.path() / "aside");
  fs::rename(file(2, "optimizer.safetensors"), file(2, "model.safetensors"));
  fs::rename(temporary_.path() / "aside", file(2, "optimizer.safetensors"));
  EXPECT_TRUE(is_found("model.safetensors"));
}

TEST_F(DamagedCheckpoint, MissingFiles) {
  for (const std::string& name : names_in(store_.folder_of(2))) {
    const std::string sound = bytes_of(file(2, name));
    fs::remove(file(2, name));
    EXPECT_TRUE(is_found(name));
    overwrite(file(2, name), sound);
  }
}

TEST_F(DamagedCheckpoint, ExtraFiles) {
  for (const char* name : {"extra.safetensors", ".hidden", "model.safetensors.bak"}) {
    fs::copy_file(file(2, "model.safetensors"), file(2, name));
    EXPECT_TRUE(is_found(name));
    fs::remove(file(2, name));
  }
  fs::create_directory(file(2, "folder"));
  EXPECT_TRUE(is_found("folder"));
}

TEST_F(DamagedCheckpoint, ThingsThatAreNotRegularFiles) {
  for (const std::string& name : names_in(store_.folder_of(2))) {
    const fs::path aside = temporary_.path() / "aside";
    fs::rename(file(2, name), aside);
    fs::create_symlink(aside, file(2, name));
    EXPECT_TRUE(is_found("is a symbolic link"));
    fs::remove(file(2, name));
    fs::create_directory(file(2, name));
    EXPECT_TRUE(is_found("is not a regular file"));
    fs::remove(file(2, name));
    ASSERT_EQ(::mkfifo(file(2, name).c_str(), 0600), 0);
    EXPECT_TRUE(is_found("is not a regular file"));
    fs::remove(file(2, name));
    fs::rename(aside, file(2, name));
  }
  EXPECT_TRUE(same_content(store_.load(2), sample_checkpoint(2)));
}

TEST_F(DamagedCheckpoint, ManifestsOfAnotherForm) {
  const std::string sound = bytes_of(file(2, "manifest.json"));
  const auto with = [&](const std::string& what, const std::string& instead) {
    std::string text = sound;
    text.replace(text.find(what), what.size(), instead);
    return text;
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {with("tupelo-checkpoint", "other"), "not the manifest of a checkpoint"},
      {with("\"version\": 1", "\"version\": 2"), "has version 2, but this program reads version 1"},
      {with("\"version\": 1", "\"version\": true"), "version that is not a whole number"},
      {with("\"step\": 2", "\"step\": 2.0"), "64-bit integer"},
      {with("\"step\": 2", "\"step\": -2"), "step that is not a whole number"},
      {with("\"step\": 2", "\"step\": 2, \"step\": 2"), "the key 'step' twice"},
      {with("\"step\": 2", "\"step\": 2, \"more\": 2"), "exactly the keys format"},
      {with("model.safetensors", "../../etc/passwd"), "which no file may be called"},
      {with("model.safetensors", "Model.safetensors"), "which no file may be called"},
      {with("model.safetensors", "/model.safetensors"), "which no file may be called"},
      {with("model.safetensors", "manifest.json"), "which no file may be called"},
      {with("state.json", "state2.json"), "which no file may be called"},
      {with("state.json", "state.safetensors"), "does not list state.json"},
      {with("\"size_bytes\"", "\"size\""), "exactly size_bytes and sha256"},
      {with("\"sha256\": \"", "\"sha256\": \"0"), "not 64 digits"},
      {"{}", "exactly the keys format"},
      {"[]", "does not begin with '{'"},
      {"{\"a\":" + std::string(100, '['), "nested deeper than 32"},
      {std::string((16 << 20) + 1, ' '), "at most 16 MB"}};
  for (const auto& [text, reason] : cases) {
    overwrite(file(2, "manifest.json"), text);
    EXPECT_TRUE(is_found(reason));
    EXPECT_TRUE(is_found("manifest.json"));
  }
}

}  // namespace
}  // namespace tupelo::damaged_checkpoint_test
