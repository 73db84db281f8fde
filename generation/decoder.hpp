// Sequences that a language model continues: one decoder, or a pair of decoders of which the first serves the first
// step, with an encoder before them if the model has one. Used by one thread at a time; the sessions must outlive it.
// A call that throws leaves the sequences as they were.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "generation/decoder_step.hpp"
#include "ir/hash.hpp"

namespace kiln {

struct decoder_models {
  session* decoder = nullptr;
  session* first = nullptr;    // serves the first step if it is not null
  session* encoder = nullptr;  // null: the model has none
};

class decoder {
 public:
  // `context`: most ids of a sequence; 0: as many as the model takes. `chunk`: ids of a part of a long prompt; 0: as is
  // best for the device. Throws error{unsupported} that names what cannot be matched.
  explicit decoder(const decoder_models& models, std::int64_t context = 0, std::int64_t chunk = 0);
  ~decoder();

  bool has_encoder() const { return encoder_ != nullptr; }
  std::int64_t vocabulary() const { return last_->vocabulary(); }
  std::int64_t length() const { return now_.past; }  // ids of each sequence so far, with padding
  std::vector<std::int64_t> lengths() const;         // without padding
  // The ids of a sequence without padding, as far as they were given to append().
  std::vector<std::int64_t> ids_of(std::size_t row) const;
  std::int64_t batch() const { return static_cast<std::int64_t>(now_.history.size()); }
  // Most ids of a sequence; nullopt if nothing limits them.
  std::optional<std::int64_t> context() const { return context_; }
  // Whether rows of different lengths may be padded: the model takes a mask. Each of the first rows is checked
  // against a run without padding.
  bool takes_padding() const;

  bool encodes_ids() const { return encoder_ && encoder_ports_.tokens; }
  // Runs the encoder on rows of ids, padded on the right, and on the inputs that `given` has by name. Throws
  // error{usage} for an input that is neither. An encoder without an input of ids ignores the rows.
  void encode(const id_rows& rows, const std::map<std::string, literal>& given = {});
  // Appends a row of ids to each sequence, and returns the logits [batch, vocabulary] after the last one. Rows of
  // different lengths are padded on the left, and only the first call may have them. Throws error{invalid_sequence} for
  // an empty row or an id outside the vocabulary, and error{context_full} for more ids than the context has room for.
  std::vector<float> append(const id_rows& rows);
  // Whether steps may run ahead of their answers, with the likeliest id as the next one: on a GPU, if the file has the
  // form that updates caches in place.
  bool runs_ahead() const;
  // Like append() for rows of one length, but does not wait. answer() has the result.
  void start(const id_rows& rows);
  // Appends to each sequence the likeliest id after the last step, which need not be known yet, and does not wait. At
  // most two steps may be without an answer.
  void go_on();
  // Waits for the oldest step without an answer. Returns the likeliest next id of each row: the first of equal ones.
  std::vector<std::int64_t> answer();
  // Waits for all steps and forgets their answers.
  void finish();
  // Takes back the last `count` ids of each sequence, for drafts of another model. Keeps what was encoded. If all
  // caches are updated in place this costs nothing, and the same ids then give the same answers, to the bit. Otherwise
  // the ids that remain are run again, which gives the same answers up to rounding; copy() before the draft is cheaper.
  // Waits for all steps and forgets their answers. Throws error{usage} if the sequences are shorter.
  void rollback(std::int64_t count);
  // Forgets the sequences and what was encoded.
  void reset();

  // Several batches of sequences share one decoder: this one waits in the result, and `other` takes its place. `other`
  // is new or comes from this decoder. Waits for all steps and forgets their answers, as do the functions below.
  sequence_batch exchange(sequence_batch other = {});
  // Returns a copy of the sequences, which may go on in another way.
  sequence_batch copy();
  // The sequences as bytes for a later load() by a decoder of the same file, perhaps in another process.
  std::vector<std::byte> save();
  // Throws what read_sequences throws, and error{corrupted} for sequences that the model cannot have. The sequences
  // that were here stay in this case.
  void load(std::span<const std::byte> saved);

  std::size_t state_bytes() const { return now_.state.bytes(); }
  // Bytes that all calls copied between host and device.
  std::size_t copied_bytes() const;
  // Changes of the pointers in graphs that all calls made.
  std::size_t patches() const;
  // Time that all calls spent on plans, with the kernels that these need.
  double planning_ms() const;

 private:
  void check(const id_rows& rows) const;
  void check_padding(const id_rows& rows) const;
  void check_loaded(const sequence_batch& loaded) const;
  content_hash identity() const;
  void run_again(id_rows history, id_rows masks);
  void check_padded_answer(const id_rows& rows, std::span<const float> logits);
  bool takes_encoder_padding() const;
  // `expected`: ids that the sequences will have soon.
  step_ids step_of(const id_rows& rows, std::int64_t expected = 0) const;
  // Cuts rows of one length into chunks and calls `run(rows, expected, is_last)` for each, in order.
  template <class Run>
  void in_parts(const id_rows& rows, Run&& run);
  // Whether the model takes fewer ids at a time than these rows have.
  bool takes_one_by_one(std::size_t length) const;
  std::vector<float> run(const id_rows& rows, std::int64_t expected = 0);
  std::vector<float> run_padded(const id_rows& rows);
  // Appends rows of equal length. Their masks are set already.
  std::vector<float> run_rows(const id_rows& rows);
  void start_step(const id_rows& rows, bool after_last);

  std::unique_ptr<decoder_step> last_, first_;
  session* encoder_ = nullptr;
  encoder_ports encoder_ports_;
  std::optional<std::int64_t> context_;
  std::size_t chunk_ = 0;  // 0: prompts are given in one part
  sequence_batch now_;
};

}  // namespace kiln
