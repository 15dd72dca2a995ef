#include "checkpoints/safetensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <stdexcept>
#include <system_error>

#include "tests/checkpoints/checkpoint_samples.h"
#include "tests/checkpoints/temporary_folder.h"

namespace tupelo::safetensors_test {
namespace {

SafetensorsFile round_trip(const NamedTensors& tensors,
                           const std::map<std::string, std::string>& metadata = {}) {
  const TemporaryFolder folder;
  write_safetensors(folder.path() / "file.safetensors", tensors, metadata);
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"file.safetensors"});
  return read_safetensors(folder.path() / "file.safetensors");
}

class SafetensorsDtypes : public testing::TestWithParam<torch::ScalarType> {};

TEST_P(SafetensorsDtypes, KeepsEveryBitOfEveryShape) {
  const std::vector<std::vector<std::int64_t>> shapes = {
      {}, {0}, {1}, {7}, {3, 5}, {2, 0, 4}, {1, 2, 3, 4, 5}, {1, 1, 1, 1, 1, 1, 1}};
  torch::manual_seed(5);
  NamedTensors tensors;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    tensors.emplace_back(std::to_string(i), torch::randint(0, 1000, shapes[i]).to(GetParam()));
  }
  const SafetensorsFile file = round_trip(tensors);
  ASSERT_EQ(file.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_TRUE(same_bits(file.tensors.at(name), tensor)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, SafetensorsDtypes,
                         testing::Values(torch::kFloat64, torch::kFloat32, torch::kBFloat16,
                                         torch::kFloat16, torch::kInt64, torch::kInt32,
                                         torch::kUInt8, torch::kBool),
                         [](const auto& param) { return toString(param.param); });

TEST(Safetensors, KeepsNotANumberAndNegativeZero) {
  const torch::Tensor odd = torch::tensor({0x7fc00001, static_cast<int>(0x80000000), 0x00000001,
                                           static_cast<int>(0xff800000)},
                                          torch::kInt32)
                                .view(torch::kFloat32);
  EXPECT_TRUE(same_bits(round_trip({{"odd", odd}}).tensors.at("odd"), odd));
}

TEST(Safetensors, StoresViewsRowMajor) {
  const torch::Tensor base = torch::arange(24).view({4, 6});
  const NamedTensors views = {{"transposed", base.t()},
                              {"column", base.select(1, 3)},
                              {"every_other", base.slice(1, 0, 6, 2)},
                              {"expanded", torch::tensor({5}).expand({3, 2})},
                              {"offset", base.flatten().slice(0, 5, 9)}};
  const SafetensorsFile file = round_trip(views);
  for (const auto& [name, view] : views) {
    EXPECT_TRUE(file.tensors.at(name).is_contiguous()) << name;
    EXPECT_TRUE(torch::equal(file.tensors.at(name), view)) << name;
  }
}

TEST(Safetensors, TakesParametersAndGivesPlainTensors) {
  const torch::Tensor parameter = torch::ones({2}).requires_grad_();
  EXPECT_FALSE(round_trip({{"w", parameter}}).tensors.at("w").requires_grad());
}

TEST(Safetensors, KeepsNamesAndMetadata) {
  const std::map<std::string, std::string> metadata = {{"format", "pt"},
                                                       {"quote\"\n", "\xe4\xbd\x8d\xe7\xbd\xae"}};
  const SafetensorsFile file = round_trip(
      {{"\xe4\xbd\x8d\xe7\xbd\xae", torch::ones({1})}, {"", torch::zeros({1})}}, metadata);
  EXPECT_EQ(file.metadata, metadata);
  EXPECT_EQ(file.tensors.count("\xe4\xbd\x8d\xe7\xbd\xae"), 1u);
  EXPECT_EQ(file.tensors.count(""), 1u);
}

TEST(Safetensors, AFileMayHoldNothing) { EXPECT_TRUE(round_trip({}).tensors.empty()); }

TEST(Safetensors, StoresInTheOrderGivenBehindAPaddedHeader) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "f";
  write_safetensors(
      path, {{"b", torch::full({1}, 2, torch::kUInt8)}, {"a", torch::full({2}, 7, torch::kUInt8)}});
  EXPECT_EQ(bytes_of(path), std::string("\x70\0\0\0\0\0\0\0", 8) +
                                R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                R"("a":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})" +
                                std::string(0x70 - 105, ' ') + "\x02\x07\x07");
}

TEST(Safetensors, ReplacesAnOlderFile) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "f";
  write_safetensors(path, {{"a", torch::zeros({100})}});
  write_safetensors(path, {{"b", torch::ones({1})}});
  EXPECT_EQ(read_safetensors(path).tensors.begin()->first, "b");
}

TEST(Safetensors, RefusesWhatItCannotStoreAndLeavesTheOlderFile) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "f";
  write_safetensors(path, {{"a", torch::zeros({3})}});
  const std::string before = bytes_of(path);
  const torch::Tensor one = torch::ones({1});
  const std::vector<NamedTensors> refused = {
      {{"a", one}, {"a", one}},       {{"__metadata__", one}},
      {{"a", torch::Tensor()}},       {{"a", one.to(torch::kComplexFloat)}},
      {{"a", one.to(torch::kInt16)}}, {{"\xff\xfe", one}}};
  for (const NamedTensors& tensors : refused) {
    EXPECT_THROW(write_safetensors(path, tensors), std::invalid_argument);
  }
  EXPECT_EQ(bytes_of(path), before);
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"f"});
}

int error_of(const std::function<void()>& action, const std::string& named) {
  try {
    action();
  } catch (const std::system_error& error) {
    EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
    return error.code().value();
  }
  return 0;
}

TEST(Safetensors, SaysWhichFileTheDiskRefused) {
  const TemporaryFolder folder;
  const std::filesystem::path absent = folder.path() / "absent";
  EXPECT_EQ(error_of([&] { read_safetensors(absent); }, absent.string()), ENOENT);
  EXPECT_EQ(error_of([&] { write_safetensors(absent / "f", {}); }, absent.string()), ENOENT);
  std::filesystem::create_directory(absent);
  EXPECT_EQ(error_of([&] { write_safetensors(absent, {}); }, absent.string()), EISDIR);
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"absent"});
}

TEST(Safetensors, ReadsRegularFilesOnly) {
  const TemporaryFolder folder;
  EXPECT_THROW(read_safetensors(folder.path()), CorruptCheckpoint);
  const std::filesystem::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(read_safetensors(pipe), CorruptCheckpoint);
}

}  // namespace
}  // namespace tupelo::safetensors_test
