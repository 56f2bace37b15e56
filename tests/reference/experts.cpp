#include "tests/reference/experts.h"

#include <string>

#include "tests/reference/matrix_product.h"

namespace canopy::reference {

std::vector<double> expert_products(const HostWeight& weight, uint32_t expert, uint32_t expert_rows, const float* row,
                                    double scale, const std::vector<float>& bias) {
  std::vector<double> products(expert_rows);
  for (uint32_t r = 0; r < expert_rows; ++r) {
    const uint32_t of_all = expert * expert_rows + r;
    products[r] = scale * dot(weight.row(of_all), row, weight.cols()) + bias[of_all];
  }
  return products;
}

std::vector<float> bias_of_rows(const Buffer* bias, uint32_t rows, const char* what) {
  if (bias == nullptr) return std::vector<float>(rows);
  const auto values = elements<float>(bias, rows, what);
  return {values.begin(), values.end()};
}

uint32_t rows_of_expert(const HostWeight& weight, const ExpertCounts& experts, const char* op) {
  check_experts(experts, op);
  require(weight.rows() % experts.all == 0, std::string(op) + ": the weight's " + std::to_string(weight.rows()) +
                                                " rows are no multiple of " + std::to_string(experts.all) +
                                                " experts.");
  return weight.rows() / experts.all;
}

std::span<const uint32_t> chosen_experts(const Buffer* chosen, uint32_t width, const ExpertCounts& experts,
                                         const char* op) {
  const auto all = elements<uint32_t>(chosen, uint64_t{width} * experts.used, std::string(op) + ": chosen");
  for (const uint32_t expert : all) {
    require(expert < experts.all, std::string(op) + ": a row has chosen expert " + std::to_string(expert) +
                                      "; there are " + std::to_string(experts.all) + ".");
  }
  return all;
}

}  // namespace canopy::reference
