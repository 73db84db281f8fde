// One run of a decoder: ids in, logits out, states carried over. Used by one thread at a time; the session must outlive
// it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "generation/decoder_ports.hpp"
#include "generation/sequence_batch.hpp"
#include "generation/step_inputs.hpp"
#include "session/session.hpp"

namespace kiln {

// The ids of a step, row-major. Everything that the model does not take is ignored.
struct step_ids {
  std::int64_t batch = 1, sequence = 1, past = 0;
  std::int64_t expected = 0;            // ids that the sequences will have soon: caches get room for them at once
  std::vector<std::int64_t> tokens;     // [batch, sequence]
  std::vector<std::int64_t> mask;       // [batch, past + sequence]
  std::vector<std::int64_t> positions;  // [batch, sequence]
};

class decoder_step {
 public:
  // Throws what recognize_decoder throws, and error{unsupported} if the program does not allow an empty past.
  explicit decoder_step(session& model);

  const decoder_ports& ports() const { return ports_; }
  const program& model() const { return session_.portable(); }
  // The number of ids that every run takes, if the program fixes it.
  std::optional<std::int64_t> fixed_sequence() const;
  std::optional<std::int64_t> fixed_batch() const;
  std::int64_t vocabulary() const;  // number of logits of an id
  std::int64_t known_ids() const;   // the model takes ids from 0 to one less
  // The number of ids for which the model has positions, if the file says it.
  std::optional<std::int64_t> positions() const;

  // Returns the logits of the last id of each row, [batch, vocabulary]. States that `state` lacks are zeros, or empty
  // along the axis of the past. If the run fails, `state` stays as it was.
  std::vector<float> run(const step_ids& ids, sequence_state& state, const encoded_prompt* encoded);

  // Best number of ids for each part of a long prompt: kernels of that length may exist. nullopt: one part.
  std::optional<std::int64_t> chunk() const;
  // Whether start() may be used: the program says which ids are the likeliest, and the device works while the host goes
  // on.
  bool runs_ahead() const;
  // Begins a step and does not wait for it. With `after_last` the model reads the ids that the step before chose, in
  // the device's memory, and ignores `ids.tokens`. Call answer() before a third step begins.
  void start(const step_ids& ids, sequence_state& state, const encoded_prompt* encoded, bool after_last);
  // Waits for the oldest step without an answer. Returns the likeliest next id of each row.
  std::vector<std::int64_t> answer();
  // Forgets the answer of the last step; does not wait.
  void skip_answer() { --started_; }
  // Waits for all steps and forgets their answers. Call it before the state of a started step is destroyed.
  void finish();

  device& on() const { return session_.resources().device(); }
  // Throws error{corrupted} if sequences of this number and length cannot have left this state.
  void check_state(const sequence_state& state, std::int64_t batch, std::int64_t length) const;

  // Over all runs: bytes that were copied between host and device; patches() counts changes of pointers in graphs.
  std::size_t copied_bytes() const { return copied_bytes_; }
  std::size_t patches() const;
  // Time to make plans, with the kernels that they need.
  double planning_ms() const { return planning_ms_; }

 private:
  using state_types = std::map<std::string, shape>;  // by state_port::key
  shape input_shape(std::size_t place, const step_ids& ids, const state_types& states,
                    const encoded_prompt* encoded) const;
  dim_bindings sizes_of(const step_ids& ids, std::vector<shape>& shapes, const state_types& states,
                        const encoded_prompt* encoded) const;
  std::optional<std::int64_t> recorded_range(std::size_t place) const;
  std::optional<std::int64_t> most_ids(const dim& largest_index, std::int64_t limit) const;
  std::vector<std::int64_t> values_of(input_role role, const step_ids& ids, const encoded_prompt* encoded) const;
  void give_caches_room(const step_ids& ids, sequence_state& state);
  // A plan for this step that serves later ones too, or null.
  size_series* series_for(const step_ids& ids, const dim_bindings& sizes, const state_types& states,
                          const encoded_prompt* encoded);
  dim_bindings exact_of(const step_ids& ids, const dim_bindings& sizes, const dim_bindings& room) const;
  dim_bindings room_of(const step_ids& ids, const state_types& states, const encoded_prompt* encoded) const;
  void upload_inputs(const step_ids& ids, const std::vector<shape>& shapes, const encoded_prompt* encoded);
  // Enqueues a step. If `logits` is not null, waits for it and stores the logits there. `state` changes only if nothing
  // was thrown.
  void enqueue(const step_ids& ids, sequence_state& state, const encoded_prompt* encoded, bool after_last,
               std::vector<float>* logits);
  void add_zeros(const std::vector<shape>& shapes, sequence_state& state, std::vector<std::string>& added);
  std::vector<float> last_logits(std::span<const std::byte> logits, const shape& type, std::int64_t batch);

  session& session_;
  decoder_ports ports_;
  std::vector<value> parameters_;
  std::map<std::size_t, std::size_t> state_of_input_, state_of_output_;  // places in ports_.states
  step_inputs inputs_;
  std::vector<growing_memory> outputs_;    // of ports that are no state
  std::unique_ptr<device_stream> stream_;  // the device's own
  // The likeliest next ids of the last two steps; step n has number n % 2.
  struct found_ids {
    growing_memory memory;
    std::unique_ptr<device_event> there;
    std::int64_t batch = 0;
  };
  std::array<found_ids, 2> found_;
  std::size_t started_ = 0, answered_ = 0;
  bool in_flight_ = false;
  std::unique_ptr<device_stream> aside_;  // for answers of a step while the next one runs
  // The plan of the last steps of one kind, how many it has served, and the room where the last one served one step
  // only.
  struct step_plan {
    std::unique_ptr<size_series> series;
    std::size_t served = 0;
    std::optional<dim_bindings> unserved;
    dim_bindings room;
  };
  step_plan few_, chunks_;
  std::size_t copied_bytes_ = 0, patches_ = 0;
  double planning_ms_ = 0;
};

}  // namespace kiln
