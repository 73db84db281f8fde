// The operations for parameters, constants and control flow.
#pragma once

#include <optional>
#include <vector>

#include "ir/operation.hpp"

namespace kiln {

// An input of the module. No inputs; the shape is fixed when it is added.
struct parameter {
  std::string name_in_module;
  element_type type = element_type::f32;
  std::vector<dim> dims;

  std::string_view name() const { return "parameter"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("name_in_module", self.name_in_module);
    f("type", self.type);
    f("dims", self.dims);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// A literal. No inputs. reflect() exposes only the content hash; the bytes are stored with the program's weights.
struct constant {
  literal data;

  std::string_view name() const { return "constant"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    std::string hash = self.data.hash().hex();
    f("hash", hash);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// inputs: condition bool[], then the arguments of both bodies. bodies: then, else, with the same parameters and output
// shapes. outputs: the outputs of the taken body. Executed by the interpreter or the runtime, not by evaluate().
struct if_else {
  std::string_view name() const { return "if"; }
  template <class Self, class F>
  static void reflect(Self&, F) {}
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

// ONNX Loop.
// inputs: trip count i64[], start condition bool[], `carried` loop-carried values, then invariants.
// body parameters: iteration i64[], condition bool[], carried..., invariants...
// body outputs: condition bool[], carried..., then scanned values.
// outputs: the final carried values, then each scanned value stacked along a new axis 0, whose length is the trip
// count. The count is `trips`, or the one dim of `open_trips` if it follows from sizes. If it depends on data, trips is
// -1 and open_trips is empty, which is allowed only for loops without scanned values.
struct loop {
  std::int64_t carried = 0;
  std::int64_t trips = -1;
  std::vector<dim> open_trips = {};

  // The trip count, if it does not depend on data.
  std::optional<dim> count() const;

  std::string_view name() const { return "loop"; }
  template <class Self, class F>
  static void reflect(Self& self, F f) {
    f("carried", self.carried);
    f("trips", self.trips);
    // Written only where it is set, so that other programs keep their bytes.
    if (!std::is_const_v<Self> || !self.open_trips.empty()) f("open_trips", self.open_trips);
  }
  std::vector<shape> infer(std::span<const shape> inputs) const;
  std::vector<literal> evaluate(std::span<const literal> inputs) const;
};

}  // namespace kiln
