// Which input and output of a decoder is what.
#include "generation/decoder_ports.hpp"

#include <gmock/gmock.h>

#include "ir/error.hpp"
#include "test/generation/toy_decoder.hpp"

namespace kiln::testing {
namespace {

using ::testing::HasSubstr;

std::string refusal(const program& p) {
  try {
    recognize_decoder(p);
  } catch (const error& e) {
    EXPECT_EQ(e.kind(), error_kind::unsupported);
    return e.what();
  }
  return "";
}

void expect_toy(const decoder_ports& ports) {
  EXPECT_EQ(ports.tokens, 0u);
  EXPECT_EQ(ports.logits, 0u);
  ASSERT_EQ(ports.states.size(), 2u);
  for (std::size_t s : {0u, 1u}) {
    EXPECT_EQ(ports.states[s].input, s + 1);
    EXPECT_EQ(ports.states[s].output, s + 1);
    EXPECT_EQ(ports.states[s].axis, 1u);
    EXPECT_FALSE(ports.states[s].written_once);
  }
  EXPECT_TRUE(ports.has_past());
}

TEST(decoder_ports, follow_the_names_of_exporters) { expect_toy(recognize_decoder(toy_decoder())); }

TEST(decoder_ports, follow_the_structure_where_names_say_nothing) {
  expect_toy(recognize_decoder(toy_decoder({"tokens", "a", "b", "linear_14", "cat_7", "cat_8"})));
}

TEST(decoder_ports, are_refused_by_name) {
  program lacks_ids;
  module& m = lacks_ids.main();
  m.set_outputs({m.add_parameter("x", {element_type::f32, {1, 2, 3}})}, {"y"});
  EXPECT_THAT(refusal(lacks_ids), HasSubstr("no input of token ids"));

  program extra = toy_decoder();
  extra.main().add_parameter("pixel_values", {element_type::f32, {1, 3, 8, 8}});
  EXPECT_THAT(refusal(extra), HasSubstr("input 'pixel_values'"));

  program twice = toy_decoder();
  twice.main().add_parameter("token_type_ids", {element_type::i64, {1, 3}});
  EXPECT_THAT(refusal(twice), HasSubstr("token_type_ids"));
}

TEST(decoder_ports, of_an_encoder_end_in_its_states) {
  program p;
  module& m = p.main();
  const value ids = m.add_parameter("input_ids", {element_type::i64, {dim::symbol("b"), dim::symbol("s")}});
  const value table = m.add_constant(literal::filled({element_type::f32, {5, 4}}, 1));
  m.set_outputs({m.add(gather{}, {table, ids})}, {"last_hidden_state"});
  const encoder_ports ports = recognize_encoder(p);
  EXPECT_EQ(ports.tokens, 0u);
  EXPECT_EQ(ports.states, 0u);
}

TEST(decoder_ports, of_an_encoder_of_sound_are_no_ids) {
  program p;
  module& m = p.main();
  const std::vector<dim> dims{dim::symbol("b"), dim::symbol("samples")};
  const value sound = m.add_parameter("input_values", {element_type::f32, dims});
  const value mask = m.add_parameter("attention_mask", {element_type::i64, dims});
  const value kept = m.add(elementwise{scalar_function::mul}, {sound, m.add(convert{element_type::f32}, {mask})});
  m.set_outputs({m.add(reshape{{dims[0], dims[1], 1}}, {kept})}, {"last_hidden_state"});
  const encoder_ports ports = recognize_encoder(p);
  EXPECT_FALSE(ports.tokens);
  EXPECT_EQ(ports.inputs[1], input_role::mask);
}

// A merged decoder whose branches compute sizes from data: the flag decides no shapes, and the branch of later steps
// gives no rows of what was computed from the encoder.
TEST(decoder_ports, what_a_branch_on_data_computes_once_is_kept) {
  program p;
  module& m = p.main();
  const dim b = dim::symbol("b"), s = dim::symbol("s"), e = dim::symbol("e");
  const value ids = m.add_parameter("input_ids", {element_type::i64, {b, s}});
  const value keys = m.add_parameter("past_key_values.0.encoder.key", {element_type::f32, {b, 2, e, 4}});
  const value flag = m.add_parameter("use_cache_branch", {element_type::boolean, {1}});
  const value count = m.add(convert{element_type::i64}, {flag});
  const value table = m.add_constant(literal::filled({element_type::f32, {5, 4}}, 1));
  const value counted = m.add(bounded{2}, {keys, count});
  m.set_outputs({m.add(gather{}, {table, ids}), counted, count, count},
                {"logits", "present.0.encoder.key", "present.0.encoder.key.count", "present.0.encoder.key.count_"});
  const decoder_ports ports = recognize_decoder(p);
  EXPECT_FALSE(ports.branch);
  ASSERT_EQ(ports.states.size(), 2u);
  EXPECT_EQ(ports.states[0].input, 1u);
  EXPECT_TRUE(ports.states[0].written_once);
  EXPECT_EQ(ports.states[1].output, 2u);  // the other count has the same key
}

}  // namespace
}  // namespace kiln::testing
