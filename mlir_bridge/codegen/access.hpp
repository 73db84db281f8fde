// How the loads of a fusion depend on the loop axes: what decides which axes may be walked as one, where a loop must
// be cut so that concat and pad are free inside the pieces, and whether a transpose needs tiles.
#pragma once

#include <set>
#include <vector>

#include "mlir_bridge/codegen/kernel_emitter.hpp"

namespace kiln::codegen {

class access_analysis {
 public:
  // The loop axes are those of `domain`; add_root says what is evaluated at the loop's own position.
  access_analysis(const kernel_emitter& e, std::vector<std::int64_t> domain) : e_(e), domain_(std::move(domain)) {}
  void add_root(value v);

  // Maximal runs of axes that every access treats as one long axis: each is a list of domain axes, outermost first.
  // Axes of extent 1 belong to no run. An index of a run goes to its last axis and 0 to the others.
  std::vector<std::vector<std::size_t>> runs() const;
  // Positions along the last domain axis where the code changes, without 0 and the extent.
  std::vector<std::int64_t> cuts() const;
  // The axis that some load walks contiguously while it strides along the last axis; none for kernels without
  // transposes.
  std::optional<std::size_t> transposed_axis() const;

 private:
  // A position along one axis as a function of the loop indices: offset + Σ coefficient × index. Opaque where it is
  // not.
  struct form {
    bool affine = true;
    std::vector<std::int64_t> coefficients;
    std::int64_t offset = 0;
    friend auto operator<=>(const form&, const form&) = default;
  };
  using forms = std::vector<form>;
  form nothing(std::int64_t offset = 0) const { return {true, std::vector<std::int64_t>(domain_.size(), 0), offset}; }
  static form opaque() { return {false, {}, 0}; }
  form scaled(const form& f, std::int64_t factor, std::int64_t offset) const;
  form sum(const form& a, const form& b) const;
  void trace(value v, const forms& where);
  void use(const form& f);
  void cut_at(const form& f, std::int64_t boundary);
  void load(const buffer& b, const forms& where);
  forms reshaped(const forms& where, const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to);

  const kernel_emitter& e_;
  std::vector<std::int64_t> domain_;
  std::set<std::vector<std::int64_t>> used_;
  std::set<std::int64_t> cuts_;
  std::set<std::pair<value, forms>> seen_;
  std::vector<std::vector<std::int64_t>> loads_;
};

}  // namespace kiln::codegen
