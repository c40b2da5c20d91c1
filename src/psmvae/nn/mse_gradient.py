"""The gradient of a regression's squared error, by hand."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from psmvae.kinds.numeric import NormalBlock
from psmvae.nn.columns import Columns
from psmvae.nn.network import Linear
from psmvae.nn.regression import Regression


class MSEGradient:
    """Half the squared error of hidden cells, summed over a row, and its gradient.

    Autograd comes to the same for a regression whose columns are all numbers. But its books take
    time, which is a good part of so small a step on a CPU.

    Parameters
    ----------
    regression : Regression
        A plain network of one member; see `fits`.
    """

    def __init__(self, regression: Regression) -> None:
        self.regression = regression
        net = regression.net
        self.layers = [net.first, *net.hidden, net.last]
        self.smooth = net.is_smooth

    @staticmethod
    def fits(regression: Regression, columns: Columns) -> bool:
        """Whether this is the gradient of a regression's log density, and faster."""
        net = regression.net
        layers = [net.first, *net.hidden, net.last]
        if net.n_sets or net.dropout > 0 or not all(type(layer) is Linear for layer in layers):
            return False
        numbers = all(type(block) is NormalBlock for block in columns.blocks)
        weight = net.first.weight
        return numbers and weight.shape[0] == 1 and weight.device.type == "cpu"

    @torch.no_grad()
    def gradient(
        self, features: Tensor, x: Tensor, visible: Tensor, hidden: Tensor, into: Sequence[Tensor]
    ) -> None:
        """Write the gradient of the rows' mean into tensors shaped as the regression's parameters.

        ``x``, ``visible`` and ``hidden`` are ``(1, row, column)``, ``features`` as in `Regression`.
        """
        weights = [layer.weight.squeeze(0) for layer in self.layers]
        h = self.regression.inputs(features, x, visible).squeeze(0)
        inputs, sums = [h], []
        for layer, weight in zip(self.layers[:-1], weights[:-1], strict=True):
            sums.append(torch.addmm(_bias(layer), h, weight))
            h = nn.functional.silu(sums[-1]) if self.smooth else torch.relu(sums[-1])
            inputs.append(h)
        outputs = torch.addmm(_bias(self.layers[-1]), h, weights[-1])
        grad = (outputs - x.squeeze(0)).mul_(hidden.squeeze(0)).div_(x.shape[1])
        for k in range(len(weights) - 1, -1, -1):
            of_weight, of_bias = into[2 * k], into[2 * k + 1]
            torch.mm(inputs[k].t(), grad, out=of_weight.squeeze(0))
            torch.sum(grad, 0, out=of_bias.view(-1))
            if k == 0:
                return
            grad = grad @ weights[k].t()
            if self.smooth:
                grad = torch.ops.aten.silu_backward(grad, sums[k - 1])
            else:
                grad = torch.ops.aten.threshold_backward(grad, sums[k - 1], 0)


def _bias(layer: Linear) -> Tensor:
    if layer.bias is None:
        raise ValueError("a layer of a plain network has a bias.")
    return layer.bias.flatten()
