// Every operator of the IR.
#pragma once

#include "ir/code_object.hpp"
#include "ir/ops/attention.hpp"
#include "ir/ops/bounded.hpp"
#include "ir/ops/contraction.hpp"
#include "ir/ops/data_sizes.hpp"
#include "ir/ops/elementwise.hpp"
#include "ir/ops/movement.hpp"
#include "ir/ops/recurrent.hpp"
#include "ir/ops/reduction.hpp"
#include "ir/ops/selection.hpp"
#include "ir/ops/structure.hpp"
