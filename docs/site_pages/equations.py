r"""Equations of docstrings, as they are written there, and in LaTeX for the site.

Docstrings are read in consoles, so that their equations are plain text. A test holds that each key is in a public docstring.
"""
from __future__ import annotations

import re

EQUATIONS = {
    # dynamics
    "``M(q) a + b(q, v) = tau + tau_passive + sum_i J_i^T f_ext_i``":
        r"M(q)\, a + b(q, v) = \tau + \tau_{\mathrm{passive}} + \sum_i J_i^T f_{\mathrm{ext}, i}",
    "``M a + b = tau``": r"M a + b = \tau",
    "``M(q)``": "M(q)", "``M(q)^-1``": "M(q)^{-1}", "``b(q, v)``": "b(q, v)", "``b(q, 0)``": "b(q, 0)",
    "``dV_0 = [0; -g]``": r"\dot V_0 = (0, -g)",
    "``S^T F``": "S^T F",
    # kinematics
    "``J v``": "J v", "``J a + dJ v``": r"J a + \dot J v", "dV = J a + dJ v": r"\dot V = J a + \dot J v",
    "``q0 (+) dv``": r"q_0 \oplus dv", "``q0 (+) dv = q1``": r"q_0 \oplus dv = q_1",
    "``V^(k) = sum_j C(k, j) J^(j) v^(k - j)``": r"V^{(k)} = \sum_j \binom{k}{j} J^{(j)} v^{(k-j)}",
    "``Ad_T V``": r"\mathrm{Ad}_T V", "``Ad*_{T^-1} F``": r"\mathrm{Ad}^*_{T^{-1}} F",
    "T = T_parent T0 exp(S q(t))": r"T = T_{\mathrm{parent}}\, T_0\, e^{S q(t)}",
    # Coriolis matrices and geometry
    "``C(q, v)``": "C(q, v)", "``C v``": "C v", "``dM/dt - 2C``": r"\dot M - 2C", "``dM/dt``": r"\dot M",
    "``C + C^T``": "C + C^T",
    "``C_kj = sum_i Gamma_ijk v_i``": r"C_{kj} = \sum_i \Gamma_{ijk} v_i",
    "``tau_k = sum_j M_kj a_j + sum_ij Gamma_ijk v_i v_j + gravity``":
        r"\tau_k = \sum_j M_{kj} a_j + \sum_{ij} \Gamma_{ijk} v_i v_j + \text{gravity}",
    "``Gamma_ijk + Gamma_ikj = dM_jk/dq_i``": r"\Gamma_{ijk} + \Gamma_{ikj} = \frac{\partial M_{jk}}{\partial q_i}",
    "``Gamma_ijk = (dM_kj/dq_i + dM_ki/dq_j - dM_ij/dq_k)/2 = Gamma_jik``":
        r"\Gamma_{ijk} = \tfrac{1}{2} \left( \frac{\partial M_{kj}}{\partial q_i} + \frac{\partial M_{ki}}{\partial q_j}"
        r" - \frac{\partial M_{ij}}{\partial q_k} \right) = \Gamma_{jik}",
    "``Gamma_ijk = <nabla_Xi Xj, Xk>``": r"\Gamma_{ijk} = \langle \nabla_{X_i} X_j, X_k \rangle",
    "``R_ijkl``": "R_{ijkl}", "``R_ijkl = <R(Xk, Xl) Xj, Xi>``": r"R_{ijkl} = \langle R(X_k, X_l) X_j, X_i \rangle",
    "``R(X, Y) = nabla_X nabla_Y - nabla_Y nabla_X - nabla_[X,Y]``":
        r"R(X, Y) = \nabla_X \nabla_Y - \nabla_Y \nabla_X - \nabla_{[X,Y]}",
    "Gamma_ijk - Gamma_jik = <[Xi, Xj], Xk>": r"\Gamma_{ijk} - \Gamma_{jik} = \langle [X_i, X_j], X_k \rangle",
    "R^ij_ij": r"R^{ij}{}_{ij}", "O(n depth^2)": r"O(n\, \mathrm{depth}^2)",
    # time derivatives
    "d^k tau / dt^k": r"\frac{d^k \tau}{dt^k}", "d^k v / dt^k": r"\frac{d^k v}{dt^k}", "d^k a / dt^k": r"\frac{d^k a}{dt^k}",
    "d^k T/dt^k": r"\frac{d^k T}{dt^k}",
    # derivatives
    "``da = -M^-1 dID``": r"da = -M^{-1}\, d\mathrm{ID}", "``da_v = -M_vv^-1 dID_v``": r"da_v = -M_{vv}^{-1}\, d\mathrm{ID}_v",
    "``dtau_u = dID_u + M_uv da_v``": r"d\tau_u = d\mathrm{ID}_u + M_{uv}\, da_v",
    "a = M^-1 (tau + tau_passive + J^T f_ext - b)": r"a = M^{-1} (\tau + \tau_{\mathrm{passive}} + J^T f_{\mathrm{ext}} - b)",
    "tau = M a + b - tau_passive - J^T f_ext": r"\tau = M a + b - \tau_{\mathrm{passive}} - J^T f_{\mathrm{ext}}",
    "dx/dt = A x + B u, y = C x + D u": r"\dot x = A x + B u,\ y = C x + D u",
    # parameters
    "``Y(q, v, a)``": "Y(q, v, a)", "``tau = Y pi``": r"\tau = Y \pi",
    "``Y pi = tau + A^T lambda``": r"Y \pi = \tau + A^T \lambda",
    "``S^T (I dV - ad*_V I V)``": r"S^T (I \dot V - \mathrm{ad}^*_V I V)",
    # constraints
    "``M a + b = tau + A^T lambda``": r"M a + b = \tau + A^T \lambda", "``A a + gamma = 0``": r"A a + \gamma = 0",
    "``A a + gamma + 2 f A v + f^2 residual = 0``": r"A a + \gamma + 2 f A v + f^2 r = 0", "``P(q) v = 0``": "P(q)\\, v = 0",
    "``M da - A^T dlambda = -dR1``": r"M\, da - A^T d\lambda = -dR_1", "``A da = -dR2``": r"A\, da = -dR_2",
    "``A dv + d(A v) = 0``": r"A\, dv + d(A v) = 0", "``A da + d(A a + gamma) = 0``": r"A\, da + d(A a + \gamma) = 0",
    "``M a + b - A^T lambda``": r"M a + b - A^T \lambda", "``A_p^T dlambda = D_p``": r"A_p^T d\lambda = D_p",
    "``dtau_a = D_a - A_a^T dlambda``": r"d\tau_a = D_a - A_a^T d\lambda", "``N^T lambda = 0``": r"N^T \lambda = 0",
    "``N^T A_a W^2 tau_a = 0``": r"N^T A_a W^2 \tau_a = 0",
    "sum_k c_k q_k = offset": r"\sum_k c_k q_k = \text{offset}",
}

_PATTERN = re.compile("|".join(re.escape(key).replace(r"\ ", r"\s+")
                               for key in sorted(EQUATIONS, key=len, reverse=True)))


def typeset(text: str) -> str:
    """A docstring with its equations as formulas."""
    return _PATTERN.sub(lambda found: f":math:`{EQUATIONS[' '.join(found[0].split())]}`", text)
