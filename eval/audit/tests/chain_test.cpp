// Every way to alter a chain but one is seen; that one is what a head kept elsewhere is for.
#include "eval/audit/chain.h"

#include <gtest/gtest.h>

#include "eval/core/error.h"

namespace asdbench {
namespace {

Chain chain_of(int records) {
  Chain chain;
  for (int i = 0; i < records; ++i)
    chain.push_back(next_record(chain, {{"type", "note"}, {"n", i}}));
  return chain;
}

TEST(Chain, AnUntouchedChainHoldsAndCountsFromZero) {
  const Chain chain = chain_of(4);
  EXPECT_EQ(first_bad_record(chain), std::nullopt);
  EXPECT_EQ(chain[0].prev, kChainStart);
  EXPECT_EQ(chain[3].body.at("seq"), 3);
  EXPECT_EQ(head_of(chain), chain[3].hash);
  EXPECT_EQ(head_of({}), kChainStart);
  EXPECT_EQ(first_bad_record({}), std::nullopt);
}

TEST(Chain, SeesEditsRemovalsInsertionsAndReordering) {
  const Chain good = chain_of(5);
  Chain edited = good;
  edited[2].body["n"] = 7;
  EXPECT_EQ(first_bad_record(edited), 2u);
  Chain shorter = good;
  shorter.erase(shorter.begin() + 1);
  EXPECT_EQ(first_bad_record(shorter), 1u);
  Chain swapped = good;
  std::swap(swapped[3], swapped[4]);
  EXPECT_EQ(first_bad_record(swapped), 3u);
  Chain doubled = good;
  doubled.insert(doubled.begin() + 2, good[1]);
  EXPECT_EQ(first_bad_record(doubled), 2u);
  Chain rehashed_inside = good;
  rehashed_inside[2].body["n"] = 7;
  rehashed_inside[2].hash = chain_hash(rehashed_inside[2].prev, rehashed_inside[2].body);
  EXPECT_EQ(first_bad_record(rehashed_inside), 3u);
}

TEST(Chain, ARehashedLastRecordIsSeenByItsHeadOnly) {
  const Chain good = chain_of(3);
  Chain forged = good;
  forged[2].body["n"] = 7;
  forged[2].hash = chain_hash(forged[2].prev, forged[2].body);
  EXPECT_EQ(first_bad_record(forged), std::nullopt);
  EXPECT_NE(head_of(forged), head_of(good));
}

TEST(Chain, BodiesThatAreNoRecordsAreBad) {
  Chain chain = chain_of(2);
  chain[1].body = Json::array();
  EXPECT_EQ(first_bad_record(chain), 1u);
  chain = chain_of(2);
  chain[1].body["seq"] = "1";
  EXPECT_EQ(first_bad_record(chain), 1u);
  chain = chain_of(2);
  chain[1].body["n"] = 0.5;
  EXPECT_EQ(first_bad_record(chain), 1u);
  chain = chain_of(1);
  chain[0].hash = "zz";
  EXPECT_EQ(first_bad_record(chain), 0u);
  EXPECT_THROW(chain_hash("00", Json::object()), DataError);
  EXPECT_THROW(chain_hash(kChainStart, {{"x", 0.5}}), DataError);
}

}  // namespace
}  // namespace asdbench
