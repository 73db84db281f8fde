// Roles and states that the names of inputs and outputs say.
#include "generation/port_names.hpp"

#include <gtest/gtest.h>

namespace kiln {
namespace {

const shape rows{element_type::i64, {dim::symbol("b"), dim::symbol("s")}};

TEST(port_names, say_the_role_of_an_input) {
  EXPECT_EQ(role_of("input_ids", rows), input_role::tokens);
  EXPECT_EQ(role_of("decoder_input_ids", rows), input_role::tokens);
  EXPECT_EQ(role_of("attention_mask", rows), input_role::mask);
  EXPECT_EQ(role_of("encoder_attention_mask", rows), input_role::encoder_mask);
  EXPECT_EQ(role_of("position_ids", rows), input_role::positions);
  EXPECT_EQ(role_of("position_ids", {element_type::i64, {3, dim::symbol("b"), dim::symbol("s")}}),
            input_role::positions);
  EXPECT_EQ(role_of("cache_position", {element_type::i64, {dim::symbol("s")}}), input_role::positions);
  EXPECT_EQ(role_of("use_cache_branch", {element_type::boolean, {1}}), input_role::cache_branch);
  EXPECT_EQ(role_of("total_sequence_length", {element_type::i32, {}}), input_role::total_length);
  EXPECT_EQ(role_of("encoder_hidden_states", {element_type::f32, {1, 2, 3}}), input_role::encoder_states);
  EXPECT_EQ(role_of("x", rows), input_role::unknown);
}

TEST(port_names, without_the_type_say_nothing) {
  EXPECT_EQ(role_of("input_ids", {element_type::f32, {1, 2}}), input_role::unknown);
  EXPECT_EQ(role_of("attention_mask", {element_type::f32, {1, 1, 2, 3}}), input_role::unknown);
}

TEST(port_names, of_a_state_before_and_after_a_step_have_one_key) {
  EXPECT_EQ(state_key("past_key_values.0.key"), state_key("present.0.key"));
  EXPECT_EQ(state_key("past_key_values.1.encoder.value"), state_key("present.1.encoder.value"));
  EXPECT_EQ(state_key("past_k0"), state_key("present_key_0"));
  EXPECT_EQ(state_key("past_key_self_3"), state_key("present.3.decoder.key"));
  EXPECT_EQ(state_key("conv_state_in.2"), state_key("conv_state_out.2"));
  EXPECT_NE(state_key("present.0.key"), state_key("present.0.value"));
  EXPECT_NE(state_key("present.0.key"), state_key("present.1.key"));
  EXPECT_NE(state_key("present.0.decoder.key"), state_key("present.0.encoder.key"));
}

}  // namespace
}  // namespace kiln
