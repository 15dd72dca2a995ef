// Both directions between our files and those of the reference implementation (PyPI safetensors).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <torch/types.h>
#include <unistd.h>

#include <array>
#include <sstream>

#include "checkpoints/safetensors.h"
#include "tests/checkpoints/temporary_folder.h"

namespace tupelo {
namespace {

// The script's exit status, or -1.
int run_oracle(const std::string& verb, const std::string& file, const std::string& description) {
  const pid_t child = ::fork();
  if (child == 0) {
    // Python finds the packages beside itself by the path it was called with.
    ::execl(TUPELO_PYTHON, TUPELO_PYTHON, TUPELO_ORACLE_SCRIPT, verb.c_str(), file.c_str(),
            description.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

struct Dtype {
  const char* name;
  torch::ScalarType type;
};
constexpr std::array<Dtype, 8> kDtypes = {{{"F64", torch::kFloat64},
                                           {"F32", torch::kFloat32},
                                           {"BF16", torch::kBFloat16},
                                           {"F16", torch::kFloat16},
                                           {"I64", torch::kInt64},
                                           {"I32", torch::kInt32},
                                           {"U8", torch::kUInt8},
                                           {"BOOL", torch::kBool}}};

// One line of a description; safetensors_oracle.py says how it is built.
std::string describe(const std::string& name, const torch::Tensor& tensor) {
  std::ostringstream line;
  line << name << '\t';
  for (const Dtype& dtype : kDtypes) {
    if (dtype.type == tensor.scalar_type()) line << dtype.name;
  }
  line << '\t';
  for (std::int64_t i = 0; i < tensor.dim(); ++i) line << (i > 0 ? "," : "") << tensor.size(i);
  line << '\t' << std::hex;
  const auto* bytes = static_cast<const unsigned char*>(tensor.const_data_ptr());
  for (std::size_t i = 0; i < tensor.nbytes(); ++i) {
    line << (bytes[i] >> 4) << (bytes[i] & 15);
  }
  line << '\n';
  return line.str();
}

TEST(SafetensorsOracle, ReadsOurFiles) {
  const TemporaryFolder folder;
  const std::vector<std::vector<std::int64_t>> shapes = {{},     {0},       {1},
                                                         {3, 5}, {2, 0, 4}, {1, 2, 3, 4}};
  torch::manual_seed(3);
  NamedTensors tensors;
  std::string description;
  for (const Dtype& dtype : kDtypes) {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const std::string name = std::string(dtype.name) + ".\xe4\xbd\x8d." + std::to_string(i);
      tensors.emplace_back(name, torch::randint(0, 1000, shapes[i]).to(dtype.type));
      description += describe(name, tensors.back().second);
    }
  }
  tensors.emplace_back("transposed", torch::arange(6).view({2, 3}).t());
  description += describe("transposed", torch::arange(6).view({2, 3}).t().contiguous());
  const std::string file = folder.path() / "ours.safetensors";
  write_safetensors(file, tensors, {{"format", "pt"}, {"made", "by us"}});
  overwrite(folder.path() / "description", description);
  EXPECT_EQ(run_oracle("check", file, folder.path() / "description"), 0);
  overwrite(folder.path() / "description", description + "more\tU8\t1\t00\n");
  EXPECT_EQ(run_oracle("check", file, folder.path() / "description"), 1);
}

TEST(SafetensorsOracle, WritesFilesThatWeRead) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "theirs.safetensors";
  ASSERT_EQ(run_oracle("write", file, folder.path() / "description"), 0);
  const SafetensorsFile content = read_safetensors(file);
  EXPECT_EQ(content.metadata, (std::map<std::string, std::string>{{"made", "by them"}}));
  std::istringstream lines(bytes_of(folder.path() / "description"));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const std::string name = line.substr(0, line.find('\t'));
    ASSERT_EQ(content.tensors.count(name), 1u) << name;
    EXPECT_EQ(describe(name, content.tensors.at(name)), line + "\n");
  }
  EXPECT_EQ(count, 48u);
  EXPECT_EQ(content.tensors.size(), count);
}

}  // namespace
}  // namespace tupelo
