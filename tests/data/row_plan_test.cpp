#include "data/row_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <utility>

namespace tupelo::row_plan_test {
namespace {

// (document, offset), or (document, kSeparator).
using Offsets = std::vector<std::uint64_t>;
using Token = std::pair<std::uint64_t, std::uint64_t>;
constexpr std::uint64_t kSeparator = ~std::uint64_t{0};

// Documents of the given lengths; part p ends before document ends[p].
class PartedOffsets : public DocumentTable {
 public:
  PartedOffsets(const std::vector<std::uint64_t>& lengths, const std::vector<std::size_t>& ends) {
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      offsets_.push_back({0});
      for (; begin < end; ++begin)
        offsets_.back().push_back(offsets_.back().back() + lengths[begin]);
      parts_.push_back({offsets_.back().size() - 1, offsets_.back().back()});
    }
  }
  const std::vector<Part>& parts() const override { return parts_; }
  std::uint64_t offset(std::size_t part, std::uint64_t document) const override {
    return offsets_.at(part).at(document);
  }

 private:
  std::vector<std::vector<std::uint64_t>> offsets_;
  std::vector<Part> parts_;
};

std::vector<std::uint64_t> offsets_of(const std::vector<std::uint64_t>& lengths) {
  std::vector<std::uint64_t> offsets{0};
  for (const std::uint64_t length : lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

std::vector<Token> tokens_of(const RowPlan& plan, std::uint64_t row) {
  std::vector<Token> tokens;
  for (const RowPlan::Piece& piece : plan.pieces(row)) {
    for (std::uint64_t i = 0; i < piece.count; ++i) {
      tokens.emplace_back(piece.document, piece.first + i);
    }
    if (piece.separator) tokens.emplace_back(piece.document, kSeparator);
  }
  return tokens;
}

std::vector<std::uint64_t> random_lengths(std::uint64_t seed, std::size_t documents) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> lengths(documents);
  for (std::uint64_t& length : lengths) length = 1 + random() % 25;
  return lengths;
}

TEST(RowPlan, FullRowsAreTheStreamCutIntoEqualParts) {
  for (const std::int64_t sequence_length : {4, 5, 7, 12, 40, 512}) {
    const std::vector<std::uint64_t> lengths = random_lengths(1, 200);
    std::vector<Token> stream;
    for (std::size_t d = 0; d < lengths.size(); ++d) {
      if (d > 0) stream.emplace_back(d - 1, kSeparator);
      for (std::uint64_t i = 0; i < lengths[d]; ++i) stream.emplace_back(d, i);
    }
    const RowPlan plan(offsets_of(lengths), Packing::kFull, sequence_length);
    std::vector<Token> joined;
    for (std::uint64_t row = 0; row < plan.rows(); ++row) {
      const std::vector<Token> tokens = tokens_of(plan, row);
      if (row + 1 < plan.rows()) {
        EXPECT_EQ(tokens.size(), static_cast<std::size_t>(sequence_length - 2));
      }
      EXPECT_FALSE(tokens.empty());
      joined.insert(joined.end(), tokens.begin(), tokens.end());
    }
    EXPECT_EQ(joined, stream);
  }
}

TEST(RowPlan, DocumentRowsNeverCrossADocument) {
  const std::vector<std::uint64_t> lengths = random_lengths(2, 100);
  const RowPlan plan(offsets_of(lengths), Packing::kDocument, 10);
  std::uint64_t row = 0;
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    for (std::uint64_t first = 0; first < lengths[d]; first += 8, ++row) {
      const auto pieces = plan.pieces(row);
      ASSERT_EQ(pieces.size(), 1u);
      EXPECT_EQ(pieces[0].document, d);
      EXPECT_EQ(pieces[0].first, first);
      EXPECT_EQ(pieces[0].count, std::min<std::uint64_t>(8, lengths[d] - first));
      EXPECT_FALSE(pieces[0].separator);
    }
  }
  EXPECT_EQ(plan.rows(), row);
}

TEST(RowPlan, RowsForSentencePairsLeaveRoomToBeginEarlier) {
  for (const std::int64_t sequence_length : {5, 7, 12, 30, 300, 512}) {
    std::vector<std::uint64_t> lengths = random_lengths(5, 200);
    for (std::size_t d = 0; d < lengths.size(); d += 3) lengths[d] *= 40;
    const RowPlan plan(offsets_of(lengths), Packing::kDocument, sequence_length, true);
    const auto content = static_cast<std::uint64_t>(sequence_length - 3);
    EXPECT_EQ(plan.slack(), std::min<std::uint64_t>(64, content / 4));
    EXPECT_TRUE(plan.sentence_pairs());
    std::uint64_t row = 0;
    for (std::size_t d = 0; d < lengths.size(); ++d) {
      for (std::uint64_t first = 0; first < lengths[d]; ++row) {
        const RowPlan::Piece piece = plan.pieces(row).front();
        EXPECT_EQ(piece.document, d);
        EXPECT_EQ(piece.first, first);
        ASSERT_GT(piece.count, 0u);
        // Nothing begins before a document, and a row that begins early still has room.
        EXPECT_LE(piece.count + (first == 0 ? 0 : plan.slack()), content);
        first += piece.count;
        if (first < lengths[d]) {
          EXPECT_EQ(piece.count, content - plan.slack());
        }
      }
    }
    EXPECT_EQ(plan.rows(), row);
    EXPECT_EQ(RowPlan(offsets_of(lengths), Packing::kDocument, sequence_length).slack(), 0u);
  }
  EXPECT_THROW(RowPlan(Offsets{0, 5}, Packing::kDocument, 4, true), std::invalid_argument);
  EXPECT_THROW(RowPlan(Offsets{0, 5}, Packing::kFull, 40, true), std::invalid_argument);
  EXPECT_THROW(RowPlan(Offsets{0, 5}, Packing::kBestFit, 40, true), std::invalid_argument);
}

TEST(RowPlan, BestFitRowsHoldThePartsOfDocumentsEachOnce) {
  for (const std::int64_t sequence_length : {4, 7, 12, 40}) {
    const std::vector<std::uint64_t> lengths = random_lengths(3, 300);
    const RowPlan plan(offsets_of(lengths), Packing::kBestFit, sequence_length);
    const RowPlan apart(offsets_of(lengths), Packing::kDocument, sequence_length);
    EXPECT_TRUE(plan.pieces_are_sequences());
    EXPECT_FALSE(apart.pieces_are_sequences());
    std::vector<std::pair<std::uint64_t, std::uint64_t>> found, expected;  // document, first
    for (std::uint64_t row = 0; row < plan.rows(); ++row) {
      std::uint64_t tokens = 0;
      for (const RowPlan::Piece& piece : plan.pieces(row)) {
        EXPECT_GT(piece.count, 0u);
        EXPECT_FALSE(piece.separator);
        const std::uint64_t whole =
            std::min<std::uint64_t>(sequence_length - 2, lengths[piece.document] - piece.first);
        EXPECT_EQ(piece.count, whole);
        tokens += piece.count + 2;
        found.emplace_back(piece.document, piece.first);
      }
      EXPECT_LE(tokens, static_cast<std::uint64_t>(sequence_length));
    }
    for (std::uint64_t row = 0; row < apart.rows(); ++row) {
      expected.emplace_back(apart.pieces(row)[0].document, apart.pieces(row)[0].first);
    }
    std::sort(found.begin(), found.end());
    EXPECT_EQ(found, expected);
    EXPECT_LE(plan.rows(), apart.rows());
  }
}

TEST(RowPlan, PartsOfTheDocumentsChangeNothing) {
  const std::vector<std::uint64_t> lengths = {3, 8, 41, 1, 1, 9, 17, 8, 2, 100, 5, 16, 7};
  for (const std::vector<std::size_t>& ends :
       {std::vector<std::size_t>{1, 2, 5, 13}, std::vector<std::size_t>{0, 4, 4, 12, 13, 13}}) {
    const auto parts = std::make_shared<PartedOffsets>(lengths, ends);
    for (const Packing packing : {Packing::kFull, Packing::kDocument, Packing::kBestFit}) {
      for (const std::int64_t sequence_length : {5, 10, 50}) {
        const RowPlan whole(offsets_of(lengths), packing, sequence_length);
        const RowPlan parted(parts, packing, sequence_length);
        const RowPlan known(parts, packing, sequence_length, false, parted.tables());
        ASSERT_EQ(parted.rows(), whole.rows());
        for (std::uint64_t row = 0; row < whole.rows(); ++row) {
          EXPECT_EQ(tokens_of(parted, row), tokens_of(whole, row));
          EXPECT_EQ(tokens_of(known, row), tokens_of(whole, row));
        }
      }
    }
  }
}

TEST(RowPlan, SeparatorMovesToTheNextRowWhenTheDocumentFillsItsOwn) {
  const RowPlan plan(Offsets{0, 4, 6}, Packing::kFull, 6);
  ASSERT_EQ(plan.rows(), 2u);
  EXPECT_EQ(tokens_of(plan, 0), (std::vector<Token>{{0, 0}, {0, 1}, {0, 2}, {0, 3}}));
  EXPECT_EQ(tokens_of(plan, 1), (std::vector<Token>{{0, kSeparator}, {1, 0}, {1, 1}}));
}

TEST(RowPlan, NoRowForASeparatorAtTheVeryEnd) {
  EXPECT_EQ(RowPlan(Offsets{0, 4}, Packing::kFull, 6).rows(), 1u);
  EXPECT_EQ(RowPlan(Offsets{0, 5}, Packing::kFull, 6).rows(), 2u);
}

TEST(RowPlan, EmptyCorpusHasNoRows) {
  EXPECT_EQ(RowPlan(Offsets{0}, Packing::kFull, 6).rows(), 0u);
  EXPECT_EQ(RowPlan(Offsets{0}, Packing::kDocument, 6).rows(), 0u);
  EXPECT_EQ(RowPlan(Offsets{0}, Packing::kBestFit, 6).rows(), 0u);
}

TEST(RowPlan, RefusesShortRowsAndRowsThatDoNotExist) {
  EXPECT_THROW(RowPlan(Offsets{0, 5}, Packing::kFull, 3), std::invalid_argument);
  EXPECT_THROW(RowPlan(Offsets{0, 5}, Packing::kFull, 6).pieces(2), std::out_of_range);
}

}  // namespace
}  // namespace tupelo::row_plan_test
