// Recordings as data: the ops in a list, their costs, and their printed form.

#include "engine/compute/ops.h"

#include <gtest/gtest.h>

#include "tests/compute/op_bench.h"
#include "tests/compute/random_data.h"
#include "tests/reference/reference_device.h"

namespace canopy::test {
namespace {

// A pass of two rows: products of 4 x 32 elements, two heads of two with one K/V head, 10 tokens.
class OpListTest : public testing::Test {
 protected:
  OpListTest() {
    record_(EmbedArgs{.width = 2, .table = table_, .norm = {}, .out = x_});
    record_(ProjectHeadsArgs{.weights = {q_, kv_}, .in = x_, .heads = heads()});
    record_(AttentionArgs{.width = 2, .heads = 2, .shape = shape_, .max_positions = 7});
    record_(LinearAddArgs{.width = 2, .weight = square_, .in = x_, .norm = {}, .out = x_});
    record_(LinearSwigluArgs{.width = 2, .weight = gate_up_, .in = x_});
    record_(LinearAddArgs{.width = 2, .weight = square_, .in = x_, .norm = {}, .out = x_, .aux = aux_});
    record_(SelectArgs{.width = 2, .count = 1, .in = x_});
    record_(LinearArgs{.width = 1, .weight = table_, .in = x_});
    record_(ArgmaxArgs{.width = 1, .vocab = 10});
  }

  RopeStoreArgs heads() const { return {.width = 2, .heads = 2, .shape = shape_}; }

  std::unique_ptr<Device> device_ = make_reference_device();
  OpBench bench_{*device_};
  Random random_{1};
  const KvShape shape_{16, 1, 2, CacheType::f16};
  Weight* table_ = bench_.weight(random_.matrix(WeightType::q4_1, 10, 32));
  Weight* q_ = bench_.weight(random_.matrix(WeightType::q8_0, 4, 32));
  Weight* kv_ = bench_.weight(random_.matrix(WeightType::f32, 4, 32));
  Weight* square_ = bench_.weight(random_.matrix(WeightType::f16, 32, 32));
  Weight* gate_up_ = bench_.weight(random_.matrix(WeightType::f16, 6, 32));
  Activations* x_ = bench_.output_activations(2, 32);
  Buffer* aux_ = bench_.output(64);
  Recorder record_;
};

TEST_F(OpListTest, HoldsTheOpsInOrder) {
  const OpList ops = record_.finish();
  ASSERT_EQ(ops.size(), 9u);
  EXPECT_STREQ(name_of(ops[0]), "embed");
  EXPECT_STREQ(name_of(ops[8]), "argmax");
  EXPECT_EQ(count_of<LinearAddArgs>(ops), 2u);
  EXPECT_EQ(count_of<TopKArgs>(ops), 0u);
  EXPECT_TRUE(record_.finish().empty()) << "the recorder starts anew";
}

// The expected values are counted by hand from the shapes.
TEST_F(OpListTest, HasAPriceForEachOp) {
  const OpList ops = record_.finish();
  // two rows of 20 bytes, two Rows of 32, x and activations of 64 floats, the norm's weight
  EXPECT_EQ(price_of(ops[0]), (OpPrice{40 + 64 + 512 + 128, 3 * 64}));
  // weights of 136 and 512 bytes, 64 floats in; q of 8 floats, K and V of 4 halves each, two Rows, two rows of rotation
  EXPECT_EQ(price_of(ops[1]), (OpPrice{136 + 512 + 256 + 32 + 16 + 64 + 16, 2 * 2 * 256 + 2 * 3 * 6}));
  // q and out of 8 floats, K and V of 7 slots of 2 halves, two Rows
  EXPECT_EQ(price_of(ops[2]), (OpPrice{64 + 56 + 64, 4 * 2 * 7 * 4}));
  // 1024 halves, 64 floats in, x read and written and the activations, the norm's weight
  EXPECT_EQ(price_of(ops[3]), (OpPrice{2048 + 256 + 768 + 128, 2 * 2 * 1024 + 4 * 64}));
  EXPECT_EQ(price_of(ops[4]), (OpPrice{384 + 256 + 24, 2 * 2 * 192}));
  EXPECT_EQ(price_of(ops[5]).bytes, price_of(ops[3]).bytes + 256) << "with aux";
  EXPECT_EQ(price_of(ops[6]), (OpPrice{4 * (32 + 32 + 1), 0}));
  EXPECT_EQ(price_of(ops[7]), (OpPrice{200 + 128 + 40, 2 * 320}));
  EXPECT_EQ(price_of(ops[8]), (OpPrice{48, 0}));
  OpPrice sum;
  for (const Op& op : ops) sum = sum + price_of(op);
  EXPECT_EQ(price_of(ops), sum);
}

TEST_F(OpListTest, FusedHeadsCostLessThanTheirPartsByTheValuesBetween) {
  const ProjectHeadsArgs fused{.weights = {q_, kv_}, .in = x_, .heads = heads()};
  const OpPrice parts = price_of(separate_ops(fused));
  // qkv of 2 x 8 floats is written and read, and the activations of 64 floats are read twice
  EXPECT_EQ(price_of(Op(fused)), (OpPrice{parts.bytes - 128 - 256, parts.flops}));
}

TEST_F(OpListTest, IsPrintedALineAnOp) {
  EXPECT_EQ(to_string(record_.finish()),
            "embed          2 of Q4_1 [10, 32]; 744 bytes, 192 FLOPs\n"
            "project_heads  2 x Q8_0 [4, 32] F32 [4, 32], 2 heads, 1 K/V heads of 2 in f16; 1032 bytes, 1060 FLOPs\n"
            "attention      2 rows, 2 heads, 1 K/V heads of 2 in f16, up to 7 keys; 184 bytes, 224 FLOPs\n"
            "linear_add     2 x F16 [32, 32]; 3200 bytes, 4352 FLOPs\n"
            "linear_swiglu  2 x F16 [6, 32]; 664 bytes, 768 FLOPs\n"
            "linear_add     2 x F16 [32, 32], with aux; 3456 bytes, 4352 FLOPs\n"
            "select         1 of 2 rows of 32; 260 bytes, 0 FLOPs\n"
            "linear         1 x Q4_1 [10, 32]; 368 bytes, 640 FLOPs\n"
            "argmax         1 rows of 10; 48 bytes, 0 FLOPs\n"
            "9 ops; 9956 bytes, 11588 FLOPs\n");
}

// An op keeps its own copy of a list of weights, as the list that it was made with may change or go afterwards.
TEST_F(OpListTest, OwnsItsListsOfWeights) {
  Op op;
  {
    std::vector<const Weight*> weights = {q_, kv_};
    op = ProjectHeadsArgs{.weights = weights, .in = x_, .heads = heads()};
    weights.assign(2, nullptr);
  }
  EXPECT_EQ(std::get<ProjectHeadsArgs>(op).weights, (std::vector<const Weight*>{q_, kv_}));
}

TEST(WeightTypes, KnowTheirNamesAndBlocks) {
  EXPECT_EQ(to_string(WeightType::q4_k), "Q4_K");
  EXPECT_EQ(block_size(WeightType::q4_k).bytes, 144u);
  EXPECT_EQ(block_size(WeightType::mxfp4).elements, 32u);
}

}  // namespace
}  // namespace canopy::test
