#include "test/ir/ops/support.hpp"

namespace kiln::testing {
namespace {

constexpr std::int64_t steps = 3, batch = 2, width = 2, hidden = 3;

// The inputs of `recurrent` from those of the ONNX operator (X, W, R, B of `pattern` seeds 1 to 4, states 5 and 6).
std::vector<literal> inputs_of(recurrent_cell cell) {
  std::int64_t gates = (cell == recurrent_cell::lstm ? 4 : cell == recurrent_cell::gru ? 3 : 1) * hidden;
  literal x = pattern({steps, batch, width}, 1), w = pattern({gates, width}, 2), both = pattern({2 * gates}, 4);
  std::vector<double> products, recurrent_bias;
  for (std::int64_t row = 0; row < steps * batch; ++row)
    for (std::int64_t g = 0; g < gates; ++g) {
      double sum = both.at(g);
      for (std::int64_t k = 0; k < width; ++k) sum += x.at(row * width + k) * w.at(g * width + k);
      products.push_back(sum);
    }
  for (std::int64_t g = 0; g < gates; ++g) recurrent_bias.push_back(both.at(gates + g));
  std::vector<literal> inputs{tensor({steps, batch, gates}, products), pattern({gates, hidden}, 3),
                              tensor({gates}, recurrent_bias), pattern({batch, hidden}, 5)};
  if (cell == recurrent_cell::lstm) inputs.push_back(pattern({batch, hidden}, 6));
  return inputs;
}

// Expectations: onnxruntime's RNN, GRU and LSTM.
void expect_recurrent(const recurrent& op, const std::vector<std::vector<double>>& expected) {
  auto results = run_all(op, inputs_of(op.cell));
  ASSERT_EQ(results.size(), expected.size());
  expect_values(results[0], {steps, batch, hidden}, expected[0], 1e-6);
  for (std::size_t i = 1; i < expected.size(); ++i) expect_values(results[i], {batch, hidden}, expected[i], 1e-6);
}

TEST(recurrent, rnn) {
  expect_recurrent(
      {recurrent_cell::rnn, false, false},
      {{0.9986666, -0.9895598, 0.819814, 0.9079322, 0.3446634, 0.9848455, 0.9999473, -0.9947686, -0.97851, 0.6414313,
        0.8010511, -0.9359918, 0.9854308, -0.4323893, -0.990629, 0.5193951, -0.6255594, 0.9428002},
       {0.9854308, -0.4323893, -0.990629, 0.5193951, -0.6255594, 0.9428002}});
  expect_recurrent(
      {recurrent_cell::rnn, true, false},
      {{0.9855549, -0.9944327, 0.4886092, 0.8178796, -0.6051844, 0.8153917, 0.9971366, -0.9626797, -0.6716204,
        0.6581275, 0.8394819, -0.9047548, 0.9989284, -0.1089409, -0.9751367, 0.7193274, 0.3446634, 0.9954964},
       {0.9855549, -0.9944327, 0.4886092, 0.8178796, -0.6051844, 0.8153917}});
}

TEST(recurrent, gru) {
  expect_recurrent(
      {recurrent_cell::gru, false, false},
      {{-0.2655963, -0.2318626, 0.2862508, -0.8396285, 0.8473352, 0.0769534, -0.2882715, -0.5452378, 0.6134855,
        -0.0094065, 0.6129485, -0.2157545, -0.1253995, -0.780421, -0.7466299, -0.4385815, 0.7356544, 0.0540831},
       {-0.1253995, -0.780421, -0.7466299, -0.4385815, 0.7356544, 0.0540831}});
  expect_recurrent(
      {recurrent_cell::gru, false, true},
      {{-0.2686937, -0.24784, 0.3494548, -0.8270049, 0.7913533, 0.0799625, -0.280679, -0.5405115, 0.7261901, 0.4446841,
        0.5333481, 0.2898487, -0.1188568, -0.7781649, -0.6824616, -0.0783634, 0.5688078, 0.4613021},
       {-0.1188568, -0.7781649, -0.6824616, -0.0783634, 0.5688078, 0.4613021}});
  expect_recurrent(
      {recurrent_cell::gru, true, false},
      {{-0.2654324, 0.1956534, 0.3791192, -0.3179429, 0.6067725, 0.1843853, -0.1867943, -0.832747, 0.3796822,
        -0.0009086, 0.6975751, -0.2231968, -0.177216, -1.0887172, -0.8261419, -0.8761891, 0.9210746, -0.0055039},
       {-0.2654324, 0.1956534, 0.3791192, -0.3179429, 0.6067725, 0.1843853}});
  expect_recurrent(
      {recurrent_cell::gru, true, true},
      {{-0.2441003, 0.1049773, 0.4641128, 0.0929681, 0.3478991, 0.5531325, -0.1823041, -0.8637905, 0.4875118, 0.472874,
        0.6185642, 0.2691192, -0.1776392, -1.0888638, -0.8014423, -0.8674265, 0.8654343, -0.0027867},
       {-0.2441003, 0.1049773, 0.4641128, 0.0929681, 0.3478991, 0.5531325}});
}

TEST(recurrent, lstm) {
  expect_recurrent(
      {recurrent_cell::lstm, false, false},
      {{0.2063825, -0.1547981, -0.076497, 0.1301883, -0.3603627, 0.1220612, 0.4762716, -0.3761415, 0.0231687, 0.0140614,
        -0.0121578, 0.194591, 0.2241189, 0.0103813, 0.029435, 0.1437046, -0.3366906, 0.1735624},
       {0.2241189, 0.0103813, 0.029435, 0.1437046, -0.3366906, 0.1735624},
       {1.6555343, 0.0197002, 0.0321847, 0.2849689, -0.5400746, 0.3293031}});
  expect_recurrent(
      {recurrent_cell::lstm, true, false},
      {{0.5666473, -0.3496743, 0.1351662, 0.1957861, -0.3863316, 0.1589481, 0.4365335, -0.3314555, 0.0146385,
        -0.0319684, -0.0465612, 0.1762559, 0.0404447, 0.2187036, -0.1323521, 0.0483427, -0.2977886, 0.110736},
       {0.5666473, -0.3496743, 0.1351662, 0.1957861, -0.3863316, 0.1589481},
       {1.1355436, -0.572148, 0.2125298, 0.4415402, -0.5787396, 0.3468854}});
}

TEST(recurrent, narrow_types_keep_a_wide_state) {
  auto inputs = inputs_of(recurrent_cell::lstm);
  auto wide = run_all(recurrent{}, inputs);
  for (literal& input : inputs) input = run(convert{element_type::f16}, {input});
  auto narrow = run_all(recurrent{}, inputs);
  ASSERT_EQ(narrow.size(), 3u);
  EXPECT_EQ(narrow[0].type().str(), "f16[3, 2, 3]");
  for (std::int64_t i = 0; i < steps * batch * hidden; ++i) EXPECT_NEAR(narrow[0].at(i), wide[0].at(i), 2e-3);
}

TEST(recurrent, symbolic_shapes_and_refusals) {
  dim sequence = dim::symbol("sequence"), n = dim::symbol("batch");
  auto f32 = element_type::f32;
  std::vector<shape> shapes{{f32, {sequence, n, 20}}, {f32, {20, 5}}, {f32, {20}}, {f32, {n, 5}}, {f32, {n, 5}}};
  auto out = recurrent{}.infer(shapes);
  ASSERT_EQ(out.size(), 3u);
  EXPECT_EQ(out[0].str(), "f32[sequence, batch, 5]");
  EXPECT_EQ(out[2].str(), "f32[batch, 5]");
  expect_error(error_kind::invalid_model, "takes 4 inputs", [&] { recurrent{recurrent_cell::gru}.infer(shapes); });
  shapes.pop_back();
  expect_error(error_kind::invalid_model, "with G the gates of the cell",
               [&] { recurrent{recurrent_cell::gru}.infer(shapes); });
}

}  // namespace
}  // namespace kiln::testing
