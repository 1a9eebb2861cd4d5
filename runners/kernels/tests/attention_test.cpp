// Norm, rotation, cache and attention against double, and rows that depend on nothing beside them.
#include "runners/kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "runners/kernels/tests/matrices.h"

namespace asdbench::kernels::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class AttentionTest : public ::testing::TestWithParam<Isa> {
 protected:
  Isa isa() const { return GetParam(); }
};

/// One request: its cache, its keys and values as given, and a block of queries.
struct Request {
  CacheShape shape;
  std::int64_t query_heads;
  std::int64_t past;
  std::int64_t rows;
  std::vector<float> keys;     // [past + rows, heads, head_size]
  std::vector<float> values;   // likewise
  std::vector<float> queries;  // [rows, query_heads, head_size]
  std::vector<float> cached_keys;
  std::vector<float> cached_values;
  std::vector<float> out;

  Request(CacheShape cache_shape, std::int64_t heads, std::int64_t before, std::int64_t block,
          std::uint32_t seed)
      : shape(cache_shape), query_heads(heads), past(before), rows(block) {
    const std::int64_t width = shape.heads * shape.head_size;
    keys = random_values((past + rows) * width, seed);
    values = random_values((past + rows) * width, seed + 1);
    queries = random_values(rows * query_heads * shape.head_size, seed + 2);
    // NaN everywhere: what was not stored must not be seen.
    cached_keys.assign(static_cast<std::size_t>(shape.key_floats()), kNan);
    cached_values.assign(static_cast<std::size_t>(shape.value_floats()), kNan);
    out.assign(queries.size(), kNan);
    for (std::int64_t position = 0; position < past + rows; ++position) {
      store_keys_values(cache(), position, keys.data() + position * width,
                        values.data() + position * width);
    }
  }

  LayerCache cache() { return {shape, cached_keys.data(), cached_values.data()}; }

  std::int64_t width() const { return query_heads * shape.head_size; }

  /// `count` rows from `first` on.
  AttentionBlock block(std::int64_t first, std::int64_t count) {
    return {cache(),
            past + first,
            count,
            {queries.data() + first * width(), width()},
            {out.data() + first * width(), width()}};
  }
};

void attend(Pool& pool, std::vector<AttentionBlock> blocks, std::int64_t query_heads, Isa isa) {
  std::int64_t rows = 0;
  std::int64_t positions = 0;
  for (const AttentionBlock& block : blocks) {
    rows += block.rows;
    positions = std::max(positions, block.past + block.rows);
  }
  std::vector<float> workspace(static_cast<std::size_t>(attention_workspace(
                                   rows, query_heads, blocks[0].cache.shape.head_size, positions)),
                               kNan);
  attention(pool, blocks, query_heads, workspace, isa);
}

/// `two_way`: every row sees the whole block.
std::vector<double> reference(const Request& request, bool two_way = false) {
  const std::int64_t size = request.shape.head_size;
  const std::int64_t group = request.query_heads / request.shape.heads;
  std::vector<double> out;
  for (std::int64_t row = 0; row < request.rows; ++row) {
    for (std::int64_t head = 0; head < request.query_heads; ++head) {
      const float* query = request.queries.data() + (row * request.query_heads + head) * size;
      std::vector<double> weights;
      double total = 0;
      const auto at = [&](std::int64_t position) {
        return (position * request.shape.heads + head / group) * size;
      };
      const std::int64_t last = request.past + (two_way ? request.rows - 1 : row);
      for (std::int64_t position = 0; position <= last; ++position) {
        double score = 0;
        for (std::int64_t d = 0; d < size; ++d) {
          score += double{query[d]} * request.keys[static_cast<std::size_t>(at(position) + d)];
        }
        weights.push_back(score / std::sqrt(static_cast<double>(size)));
      }
      const double largest = *std::max_element(weights.begin(), weights.end());
      for (double& weight : weights) {
        weight = std::exp(weight - largest);
        total += weight;
      }
      for (std::int64_t d = 0; d < size; ++d) {
        double sum = 0;
        for (std::size_t position = 0; position < weights.size(); ++position) {
          sum +=
              weights[position] *
              request.values[static_cast<std::size_t>(at(static_cast<std::int64_t>(position)) + d)];
        }
        out.push_back(sum / total);
      }
    }
  }
  return out;
}

TEST_P(AttentionTest, AgreesWithDoubleForEveryFamilysHeadsAndOddOnes) {
  struct Case {
    std::int64_t heads, query_heads, head_size, past, rows;
  };
  Pool pool(2);
  for (const Case c : {Case{3, 9, 64, 0, 1},
                       {3, 9, 64, 200, 8},
                       {2, 4, 12, 15, 2},
                       {2, 14, 24, 126, 5},
                       {1, 1, 1, 0, 3},
                       {1, 5, 80, 300, 1},
                       {4, 28, 128, 127, 2},
                       {3, 3, 33, 1'000, 4},
                       {1, 2, 16, 0, 130}}) {
    Request request({c.heads, c.head_size, c.past + c.rows + 3}, c.query_heads, c.past, c.rows, 7);
    attend(pool, {request.block(0, c.rows)}, c.query_heads, isa());
    const std::vector<double> expected = reference(request);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(request.out[i], expected[i], 1e-5)
          << "head size " << c.head_size << ", past " << c.past << ", value " << i;
    }
  }
}

TEST_P(AttentionTest, RowsOfATwoWayBlockSeeAllOfIt) {
  Pool pool(2);
  for (const std::int64_t past : {0, 125, 200}) {
    Request request({3, 64, past + 12}, 9, past, 7, 17);
    AttentionBlock block = request.block(0, 7);
    block.two_way = true;
    attend(pool, {block}, 9, isa());
    const std::vector<double> expected = reference(request, true);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(request.out[i], expected[i], 1e-5) << "past " << past << ", value " << i;
    }
  }
}

TEST_P(AttentionTest, ARowsBitsDependOnNothingBesideIt) {
  constexpr std::int64_t kRows = 33;
  Pool one(1);
  Pool two(2);
  for (const std::int64_t past : {0, 100, 250}) {
    Request request({3, 64, 400}, 9, past, kRows, 17);
    std::vector<float> singly(request.out.size());
    for (std::int64_t row = 0; row < kRows; ++row) attend(one, {request.block(row, 1)}, 9, isa());
    singly.swap(request.out);
    ASSERT_FALSE(std::any_of(singly.begin(), singly.end(), [](float v) { return std::isnan(v); }));
    for (Pool* pool : {&one, &two}) {
      for (std::int64_t rows = 1; rows <= kRows; ++rows) {
        request.out.assign(singly.size(), kNan);
        attend(*pool, {request.block(0, rows)}, 9, isa());
        const auto end = static_cast<std::ptrdiff_t>(rows * request.width());
        ASSERT_TRUE(same_bits({request.out.begin(), request.out.begin() + end},
                              {singly.begin(), singly.begin() + end}))
            << rows << " rows after " << past;
      }
    }
  }
}

TEST_P(AttentionTest, RequestsOfDifferentLengthsShareAStep) {
  Pool pool(2);
  std::vector<Request> requests;
  for (const std::int64_t past : {0, 700, 5, 130}) {
    requests.emplace_back(CacheShape{3, 64, 720}, 9, past, past % 4 + 1, 27);
  }
  std::vector<std::vector<float>> alone;
  for (Request& request : requests) {
    attend(pool, {request.block(0, request.rows)}, 9, isa());
    alone.push_back(request.out);
    request.out.assign(request.out.size(), kNan);
  }
  requests[2].queries[3] = kNan;  // a failing request spoils its own rows only
  std::vector<AttentionBlock> blocks;
  for (Request& request : requests) blocks.push_back(request.block(0, request.rows));
  attend(pool, blocks, 9, isa());
  for (const std::size_t i : {0, 1, 3}) EXPECT_TRUE(same_bits(requests[i].out, alone[i])) << i;
  EXPECT_TRUE(std::isnan(requests[2].out[0]));
}

TEST_P(AttentionTest, ANanAmongKeysOrValuesReachesTheRowsThatSeeItAndNoOthers) {
  Pool pool(2);
  for (const bool in_keys : {true, false}) {
    Request request({1, 16, 300}, 2, 200, 4, 37);
    std::vector<float> bad(16, 1.0f);
    (in_keys ? request.keys : request.values)[202 * 16 + 5] = kNan;
    store_keys_values(request.cache(), 202, request.keys.data() + 202 * 16,
                      request.values.data() + 202 * 16);
    attend(pool, {request.block(0, 4)}, 2, isa());
    for (std::int64_t row = 0; row < 4; ++row) {
      const float* out = request.out.data() + row * request.width();
      const bool any_nan = std::any_of(out, out + 32, [](float v) { return std::isnan(v); });
      EXPECT_EQ(any_nan, row >= 2) << "row " << row;
    }
  }
}

TEST_P(AttentionTest, ARolledBackPositionIsOverwritten) {
  Pool pool(1);
  Request request({1, 16, 40}, 1, 20, 1, 47);
  attend(pool, {request.block(0, 1)}, 1, isa());
  const std::vector<float> expected = request.out;
  const std::vector<float> garbage(16, 1e30f);
  for (const std::int64_t position : {20, 21, 22}) {
    store_keys_values(request.cache(), position, garbage.data(), garbage.data());
  }
  store_keys_values(request.cache(), 20, request.keys.data() + 20 * 16,
                    request.values.data() + 20 * 16);
  attend(pool, {request.block(0, 1)}, 1, isa());
  EXPECT_TRUE(same_bits(request.out, expected));
}

TEST_P(AttentionTest, VeryLargeScoresStayFinite) {
  Pool pool(1);
  Request request({1, 16, 300}, 1, 290, 1, 57);
  for (float& query : request.queries) query *= 100.0f;  // exp of such scores overflows
  attend(pool, {request.block(0, 1)}, 1, isa());
  const std::vector<double> expected = reference(request);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(request.out[i], expected[i], 1e-3);
  }
}

TEST_P(AttentionTest, ImpossibleShapesAreRefused) {
  Pool pool(1);
  Request request({2, 16, 24}, 4, 20, 4, 67);
  std::vector<float> workspace(10'000);
  const auto call = [&](AttentionBlock block, std::int64_t query_heads, std::size_t floats) {
    attention(pool, {&block, 1}, query_heads, std::span(workspace).first(floats), isa());
  };
  EXPECT_NO_THROW(call(request.block(0, 4), 4, 10'000));
  EXPECT_THROW(call(request.block(1, 4), 4, 10'000), std::invalid_argument) << "past capacity";
  EXPECT_THROW(call(request.block(0, 4), 3, 10'000), std::invalid_argument);
  EXPECT_THROW(call(request.block(0, 4), 4, 100), std::invalid_argument);
  EXPECT_THROW(store_keys_values(request.cache(), 24, workspace.data(), workspace.data()),
               std::invalid_argument);
  EXPECT_THROW(store_keys_values(request.cache(), -1, workspace.data(), workspace.data()),
               std::invalid_argument);
  attention(pool, {}, 4, {}, isa());
}

TEST_P(AttentionTest, RmsNormAgreesWithDouble) {
  for (const std::int64_t width : {1, 2, 15, 16, 17, 64, 576, 577}) {
    const std::vector<float> x = random_values(3 * width, 77);
    const std::vector<float> weight = random_values(width, 78);
    std::vector<float> out(x.size());
    rms_norm({x.data(), width}, 3, width, weight.data(), 1e-5f, {out.data(), width}, isa());
    for (std::int64_t row = 0; row < 3; ++row) {
      double squares = 0;
      for (std::int64_t i = 0; i < width; ++i) {
        squares += std::pow(double{x[static_cast<std::size_t>(row * width + i)]}, 2);
      }
      const double inverse = 1 / std::sqrt(squares / static_cast<double>(width) + double{1e-5f});
      for (std::int64_t i = 0; i < width; ++i) {
        const auto at = static_cast<std::size_t>(row * width + i);
        const double expected = x[at] * inverse * weight[static_cast<std::size_t>(i)];
        ASSERT_NEAR(out[at], expected, 2e-6 * std::abs(expected) + 1e-30) << width;
      }
    }
    std::vector<float> in_place = x;
    rms_norm({in_place.data(), width}, 3, width, weight.data(), 1e-5f, {in_place.data(), width},
             isa());
    EXPECT_TRUE(same_bits(in_place, out));
  }
}

INSTANTIATE_TEST_SUITE_P(On, AttentionTest, ::testing::ValuesIn(supported_isas()),
                         [](const auto& isa) { return std::string(name_of(isa.param)); });

TEST(RopeTest, PairsDimensionsHalfAHeadApart) {
  const std::vector<float> frequency = {1.0f, 0.1f, 0.01f};
  float cosine[3];
  float sine[3];
  rope_angles(7, frequency, cosine, sine);
  std::vector<float> heads = random_values(2 * 6, 87);
  const std::vector<float> before = heads;
  rope(heads.data(), 2, 3, cosine, sine);
  for (std::size_t head = 0; head < 2; ++head) {
    for (std::size_t j = 0; j < 3; ++j) {
      const double angle = 7.0 * frequency[j];
      const double first = before[head * 6 + j];
      const double second = before[head * 6 + j + 3];
      EXPECT_NEAR(heads[head * 6 + j], first * std::cos(angle) - second * std::sin(angle), 1e-6);
      EXPECT_NEAR(heads[head * 6 + j + 3], second * std::cos(angle) + first * std::sin(angle),
                  1e-6);
    }
  }
  std::vector<float> unmoved = before;
  rope_angles(0, frequency, cosine, sine);
  rope(unmoved.data(), 2, 3, cosine, sine);
  EXPECT_EQ(unmoved, before);
}

}  // namespace
}  // namespace asdbench::kernels::testing
