// 'quantization_config' and its older forms: what is known is read, all else is refused with what can be read.

#include "engine/format/quantization_hf.h"

#include <gtest/gtest.h>

#include "tests/base/expect_error.h"
#include "tests/base/temp_folder.h"
#include "tests/format/tiny_model.h"

namespace canopy {
namespace {

using Method = HfQuantization::Method;
using test::TempFolder;

HfQuantization read(const std::string& quantization) {
  return read_hf_quantization(test::tiny_config(",\"quantization_config\":" + quantization), "nowhere");
}

TEST(HfQuantization, PlainFoldersHaveNone) {
  EXPECT_EQ(read_hf_quantization(test::tiny_config(), "nowhere").method, Method::none);
  EXPECT_EQ(read("null").method, Method::none);
}

TEST(HfQuantization, ReadsGptq) {
  const HfQuantization q = read(R"({"quant_method":"gptq","bits":4,"group_size":128,"desc_act":true,"sym":false,
                                    "damp_percent":0.1,"true_sequential":true,"dynamic":{"-:lm_head":{}}})");
  EXPECT_EQ(q.method, Method::gptq);
  EXPECT_EQ(q.group_size, 128u);
  EXPECT_FALSE(q.symmetric);
  EXPECT_TRUE(q.zeros_less_one) << "the first version, where none is said";
  const HfQuantization second =
      read(R"({"quant_method":"GPTQ","bits":4,"group_size":-1,"checkpoint_format":"gptq_v2","pack_dtype":"int32"})");
  EXPECT_EQ(second.group_size, 0u);
  EXPECT_FALSE(second.symmetric) << "zeros may be any where nothing is said of them";
  EXPECT_FALSE(second.zeros_less_one);
}

TEST(HfQuantization, ReadsAwq) {
  const HfQuantization q = read(R"({"quant_method":"awq","bits":4,"group_size":64,"zero_point":true,"version":"GEMM",
               "modules_to_not_convert":null})");
  EXPECT_EQ(q.method, Method::awq);
  EXPECT_EQ(q.group_size, 64u);
  EXPECT_FALSE(q.zeros_less_one);
  EXPECT_EQ(read(R"({"quant_method":"awq","w_bit":4,"q_group_size":32})").group_size, 32u);
}

TEST(HfQuantization, ReadsFp8) {
  const HfQuantization blocks =
      read(R"({"quant_method":"fp8","fmt":"e4m3","activation_scheme":"dynamic","weight_block_size":[128,64]})");
  EXPECT_EQ(blocks.method, Method::fp8);
  EXPECT_EQ(blocks.block, (std::array<uint32_t, 2>{128, 64}));
  EXPECT_EQ(read(R"({"quant_method":"fp8","activation_scheme":"static"})").block, (std::array<uint32_t, 2>{0, 0}));
  const HfQuantization compressed = read(
      R"({"quant_method":"compressed-tensors","format":"float-quantized","config_groups":{"group_0":{"weights":
          {"num_bits":8,"type":"float","strategy":"channel"},"targets":["Linear"]}},"ignore":["lm_head"]})");
  EXPECT_EQ(compressed.method, Method::fp8);
  EXPECT_EQ(read(R"({"quant_method":"mxfp4","modules_to_not_convert":["lm_head"]})").method, Method::mxfp4);
}

TEST(HfQuantization, ReadsTheFilesOfOlderTools) {
  const TempFolder gptq, awq;
  gptq.write("quantize_config.json", R"({"bits":4,"group_size":32,"desc_act":false,"sym":true})");
  EXPECT_EQ(read_hf_quantization(test::tiny_config(), gptq.path()).method, Method::gptq);
  awq.write("quant_config.json", R"({"zero_point":true,"q_group_size":128,"w_bit":4,"version":"GEMM"})");
  EXPECT_EQ(read_hf_quantization(test::tiny_config(), awq.path()).method, Method::awq);
  gptq.write("quantize_config.json", R"({"bits":3,"group_size":32})");
  test::expect_error("The field 'bits': 3 of quantize_config.json is not supported",
                     [&] { read_hf_quantization(test::tiny_config(), gptq.path()); });
}

TEST(HfQuantization, WhatIsNotKnownIsRefused) {
  const auto refused = [](const char* words, const std::string& quantization) {
    const std::string message = test::error_of([&] { read(quantization); });
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  refused("'quant_method': \"bitsandbytes\" of config.json's 'quantization_config' is not supported: readable are fp8",
          R"({"quant_method":"bitsandbytes","load_in_4bit":true})");
  refused("Get another form of the model, such as a GGUF file; these architectures run here: ",
          R"({"quant_method":"quark"})");
  refused("'quant_method': none", R"({"bits":4})");
  refused("'quant_method' of config.json's 'quantization_config' is 4;", R"({"quant_method":4})");
  refused("'bits': 8", R"({"quant_method":"gptq","bits":8,"group_size":128})");
  refused("'bits': 3", R"({"quant_method":"awq","bits":3,"group_size":128})");
  refused("'group_size': 0", R"({"quant_method":"gptq","bits":4,"group_size":0})");
  refused("'group_size'", R"({"quant_method":"gptq","bits":4,"group_size":-2})");
  refused("'group_size'", R"({"quant_method":"gptq","bits":4})");
  refused("'group_size'", R"({"quant_method":"awq","bits":4,"group_size":4294967295})");
  refused("'checkpoint_format': \"marlin\"",
          R"({"quant_method":"gptq","bits":4,"group_size":128,"checkpoint_format":"marlin"})");
  refused("'is_marlin_format': true", R"({"quant_method":"gptq","bits":4,"group_size":128,"is_marlin_format":true})");
  refused("'pack_dtype': \"int64\"", R"({"quant_method":"gptq","bits":4,"group_size":128,"pack_dtype":"int64"})");
  refused("'dynamic', with settings for '+:.*down.*'",
          R"({"quant_method":"gptq","bits":4,"group_size":128,"dynamic":{"-:a":{},"+:.*down.*":{"bits":8}}})");
  refused("'version': \"gemv\"", R"({"quant_method":"awq","bits":4,"group_size":128,"version":"gemv"})");
  refused("'zero_point': false", R"({"quant_method":"awq","bits":4,"group_size":128,"zero_point":false})");
  refused("'fmt': \"e5m2\"", R"({"quant_method":"fp8","fmt":"e5m2"})");
  refused("'weight_block_size': [128]", R"({"quant_method":"fp8","weight_block_size":[128]})");
  refused("'weight_block_size': [0,128]", R"({"quant_method":"fp8","weight_block_size":[0,128]})");
  refused("'format': \"pack-quantized\"", R"({"quant_method":"compressed-tensors","format":"pack-quantized"})");
  refused("'num_bits': 4",
          R"({"quant_method":"compressed-tensors","format":"float-quantized","config_groups":{"g":{"weights":
              {"num_bits":4,"type":"float"}}}})");
  refused("'type': \"int\"",
          R"({"quant_method":"compressed-tensors","format":"float-quantized","config_groups":{"g":{"weights":
              {"num_bits":8,"type":"int"}}}})");
  refused("'config_groups', with other than one group,",
          R"({"quant_method":"compressed-tensors","format":"float-quantized","config_groups":{}})");
}

}  // namespace
}  // namespace canopy
